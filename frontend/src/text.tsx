/** Texts of strangers: always text, with what cannot be seen made visible, and never longer than one can look at. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

// Control characters, direction overrides and isolates, zero widths, tags, lone surrogates.
const INVISIBLE =
  /([\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|[\ud800-\udfff])/u;

export function Text({ children }: { children: string }) {
  const pieces = children.split(new RegExp(INVISIBLE, "gu"));
  if (pieces.length === 1) return <bdi>{children}</bdi>;
  return (
    <bdi>
      {pieces.map((piece, index) =>
        index % 2 === 0 ? piece : (
          <span class="control" title="a character that cannot be seen">{`U+${piece.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`}</span>
        ))}
    </bdi>
  );
}

const LONG = 6_000;

export function LongText({ text, code }: { text: string; code?: boolean }) {
  const [whole, setWhole] = useState(false);
  const cut = !whole && text.length > LONG;
  return (
    <div class={code ? "long code" : "long"} tabIndex={code ? 0 : undefined}>
      <Text>{cut ? text.slice(0, LONG) : text}</Text>
      {cut && <button class="link" onClick={() => setWhole(true)}>… show all {text.length} characters</button>}
    </div>
  );
}

/** A table that may be wider than the page: then it scrolls by itself, by keys too. */
export function Wide({ label, children }: { label?: string; children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const [scrolls, setScrolls] = useState(false);
  // Before it is painted: who listens to the page hears of a region at once.
  useLayoutEffect(() => {
    const measure = () => setScrolls(box.current!.scrollWidth > box.current!.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box.current!);
    observer.observe(box.current!.firstElementChild!);
    return () => observer.disconnect();
  }, []);
  const named = scrolls ? { role: "region" as const, "aria-label": label ?? "table", tabIndex: 0 } : {};
  return <div class="wide" ref={box} {...named}>{children}</div>;
}

/** Something folded away that is made when it is looked at. */
export function Fold({ title, kind, children }: { title: ComponentChildren; kind?: string; children: ComponentChildren }) {
  const [open, setOpen] = useState(false);
  return (
    <details class={kind} onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>{title}</summary>{open && children}
    </details>
  );
}
