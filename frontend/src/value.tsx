/** Numbers on the page: short, with the full value on hover and in copies. */

import type { ComponentChildren } from "preact";
import { age, change, count, duration, standardError, measureText, moment, short, tokens, type Scale } from "./format";

/** A short form of a text. The tooltip and copies contain the full text. */
export function Short({ full, children }: { full: string; children: string }) {
  return full === children ? <span class="num">{children}</span> : <span class="num" title={full} data-full={full}>{children}</span>;
}

/** A number of a result. */
export function Value({ text, scale }: { text: string; scale?: Scale | null }) {
  return <Short full={text}>{measureText(text, scale)}</Short>;
}

export function Change({ value, scale }: { value: number; scale?: Scale | null }) {
  return <Short full={String(value)}>{change(value, scale)}</Short>;
}

export function StandardError({ text, scale }: { text: string; scale?: Scale | null }) {
  return <Short full={`standard error ${text}`}>{standardError(Number(text), scale)}</Short>;
}

export function Ends({ low, high, scale }: { low: string; high: string; scale?: Scale | null }) {
  const percent = scale?.[0] === 0 && scale[1] === 1;
  const text = percent ? `${short(Number(low) * 100)} to ${short(Number(high) * 100)}\u00a0%` : `${short(Number(low))} to ${short(Number(high))}`;
  return <Short full={`${low} to ${high}`}>{text}</Short>;
}

export function Count({ value }: { value: number | null | undefined }) {
  return value === null || value === undefined ? <>–</> : <Short full={String(value)}>{count(value)}</Short>;
}

export function Tokens({ value }: { value: number }) {
  return <Short full={String(value)}>{tokens(value)}</Short>;
}

export function Seconds({ value }: { value: number | string }) {
  return <Short full={`${value} s`}>{duration(Number(value))}</Short>;
}

/** A moment, with its age. */
export function When({ seconds, aged }: { seconds: number; aged?: boolean }) {
  return <time dateTime={new Date(seconds * 1000).toISOString()} title={moment(seconds)} data-full={aged ? moment(seconds) : undefined}>{aged ? age(seconds) : moment(seconds)}</time>;
}

/** Copies contain full values: 0.6666666666666666 if the page shows 66.67 %. */
export function copyFullValues() {
  document.addEventListener("copy", (event) => {
    const selection = getSelection();
    if (!selection || selection.isCollapsed || !event.clipboardData) return;
    const copied = [...document.querySelectorAll<HTMLElement>("[data-full]")].filter((element) => selection.containsNode(element, true));
    if (copied.length === 0) return;
    const { anchorNode, anchorOffset, focusNode, focusOffset } = selection;
    const shown = copied.map((element) => element.firstChild!.nodeValue!);
    copied.forEach((element) => { element.firstChild!.nodeValue = element.dataset.full!; });
    const inside = (node: Node | null) => copied.some((element) => element.contains(node));
    // If only a part of a number is selected, the whole number is copied.
    if (inside(anchorNode) || inside(focusNode)) {
      const backward = selection.direction === "backward";
      for (const [node, first] of [[anchorNode, !backward], [focusNode, backward]] as const)
        if (inside(node)) {
          const range = selection.getRangeAt(0);
          if (first) range.setStartBefore(copied.find((element) => element.contains(node))!);
          else range.setEndAfter(copied.find((element) => element.contains(node))!);
        }
    }
    event.clipboardData.setData("text/plain", selection.toString());
    event.preventDefault();
    copied.forEach((element, index) => { element.firstChild!.nodeValue = shown[index]; });
    try {
      selection.setBaseAndExtent(anchorNode!, anchorOffset, focusNode!, focusOffset);
    } catch { /* the selection began in a number that has become shorter */ }
  });
}

/** A display name, with its technical name below. */
export function Named({ children, under }: { children: ComponentChildren; under?: ComponentChildren }) {
  return <span class="named">{children}{under && <small>{under}</small>}</span>;
}
