/** Untrusted text: always shown as text, with invisible characters made visible and long texts folded. */

import { createContext, type ComponentChildren } from "preact";
import { useContext, useLayoutEffect, useRef, useState } from "preact/hooks";
import { count } from "./format";
import { composite, Num, shown, type Composite, type Value } from "./json";

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
          <span class="control" title="invisible character">{`U+${piece.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`}</span>
        ))}
    </bdi>
  );
}

/** Whether texts are shown without Markdown. */
export const Raw = createContext(false);
export function useRaw(): boolean {
  return useContext(Raw);
}

const LONG = 4_000;

/** Beginning of a text up to a whole line, with a button for the rest. */
export function LongText({ text, code, render }: { text: string; code?: boolean; render?: (text: string) => ComponentChildren }) {
  const [whole, setWhole] = useState(false);
  const cut = !whole && text.length > LONG * 1.25;
  const end = cut ? Math.max(LONG / 2, text.lastIndexOf("\n", LONG)) || LONG : text.length;
  const part = cut ? text.slice(0, end === LONG / 2 ? LONG : end) : text;
  return (
    <div class={code ? "long code" : render ? "rendered" : "long"} tabIndex={code ? 0 : undefined}>
      {render ? render(part) : <Text>{part}</Text>}
      {cut && <button class="link more" onClick={() => setWhole(true)}>Show all {count(text.length)} characters</button>}
    </div>
  );
}

/** Table that scrolls separately if it is wider than the page, including by keyboard. */
export function Wide({ label, children }: { label?: string; children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const [scrolls, setScrolls] = useState(false);
  // Before painting, so that screen readers announce the region immediately.
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

/** Folded content that is created when the reader opens it. */
export function Fold({ title, kind, open: begin = false, children }: { title: ComponentChildren; kind?: string; open?: boolean; children: ComponentChildren }) {
  const [open, setOpen] = useState(begin);
  return (
    <details class={kind} open={begin} onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>{title}</summary>{open && children}
    </details>
  );
}

/** Members of a list or an object by name. The names of a list are its positions. */
function members(value: Composite): [string, Value][] {
  return Array.isArray(value) ? value.map((item, at) => [String(at + 1), item]) : Object.keys(value).map((name) => [name, value[name]]);
}

const FEW = 8;

/** Number of members of a value, including members that `values.py` cut off. */
export function entries(value: Composite): string {
  const rows = members(value), last = rows.at(-1);
  const left = last && /^(?:\u2026 )?(\d+) more$/.exec(Array.isArray(value) || last[0] === "…" ? shown(last[1]) : "");
  const number = left ? rows.length - 1 + Number(left[1]) : rows.length;
  return number === 1 ? "1 entry" : `${count(number)} entries`;
}

function Scalar({ value }: { value: Value }) {
  if (value === null) return <small>null</small>;
  if (typeof value === "boolean" || value instanceof Num) return <code>{shown(value)}</code>;
  return value === "" ? <small>empty text</small> : <LongText text={shown(value)} />;
}

/** Value: texts and numbers unchanged, lists and objects as a table that folds. */
export function Nested({ value }: { value: Value }) {
  if (!composite(value)) return <Scalar value={value} />;
  const rows = members(value);
  if (rows.length === 0) return <small>empty</small>;
  if (Array.isArray(value) && rows.length <= FEW && !value.some(composite)) return <LongText text={value.map(shown).join(", ")} />;
  return (
    <table class="pairs"><tbody>{rows.map(([name, item]) => (
      <tr><th scope="row"><Text>{name}</Text></th><td>{composite(item) && members(item).length > FEW
        ? <Fold title={entries(item)}><Nested value={item} /></Fold> : <Nested value={item} />}</td></tr>
    ))}</tbody></table>
  );
}

const MARKS: Record<string, [sign: string, kind: string]> = {
  success: ["✓", "good"], passed: ["✓", "good"], scored: ["✓", "good"], verified: ["✓", "good"], right: ["✓", "good"],
  running: ["…", "busy"], superseded: ["↻", "quiet"], excluded: ["⊘", "quiet"], "not checked": ["○", "quiet"], "partly verified": ["◑", "quiet"], "not read": ["○", "quiet"], "not scored": ["○", "warn"], "not finished": ["◔", "warn"],
};

/** State: a symbol, a color and a word. */
export function Status({ status, children }: { status: string; children?: ComponentChildren }) {
  const [sign, kind] = Object.hasOwn(MARKS, status) ? MARKS[status] : ["✗", "bad"];
  return <span class={`status ${kind}`}><span aria-hidden="true">{sign}</span> {children ?? <Text>{status}</Text>}</span>;
}

/** Message in place of content. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return <div class="empty"><p><b>{title}</b></p>{children}</div>;
}

export function copy(text: string) {
  const done = navigator.clipboard?.writeText(text);
  const fallback = () => {
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  };
  if (done === undefined) fallback();
  else done.catch(fallback);
}

export function CopyButton({ text, children }: { text: () => string; children: string }) {
  const [done, setDone] = useState(false);
  return <button onClick={() => { copy(text()); setDone(true); setTimeout(() => setDone(false), 1500); }}>{done ? "Copied" : children}</button>;
}

/** Scroll to an element and keep it in place while content above it is created, until the reader scrolls. */
export function reveal(element: Element | null | undefined) {
  if (!element) return;
  let times = 0, calm = 0, top = NaN;
  const stop = () => { times = Infinity; };
  const events = ["wheel", "touchstart", "keydown", "mousedown"];
  for (const name of events) addEventListener(name, stop, { once: true, passive: true });
  const again = () => {
    if (times++ > 20 || calm > 2) return events.forEach((name) => removeEventListener(name, stop));
    element.scrollIntoView({ block: "start" });
    const now = element.getBoundingClientRect().top;
    calm = now === top ? calm + 1 : 0;
    top = now;
    setTimeout(again, 50);
  };
  again();
}
