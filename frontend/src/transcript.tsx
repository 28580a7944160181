/** A conversation as numbered turns: a tool call and its result are one turn, reasoning is folded, and an outline links to each turn. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { count, plural } from "./format";
import { composite, list, member, parse, shown, type Value } from "./json";
import { Code, Image, Markdown } from "./markdown";
import { Fold, LongText, Nested, reveal, Text } from "./text";

function urlOf(part: Value, name: string): string {
  const value = member(part, name);
  return typeof value === "string" ? value : shown(member(value, "url"));
}

function Part({ part }: { part: Value }) {
  const type = shown(member(part, "type"));
  if (type === "input_image" || type === "image_url" || type === "image") return <Image url={urlOf(part, "image_url")} />;
  if (type === "reasoning_text" || type === "reasoning" || type === "summary_text")
    return <Reasoning text={shown(member(part, "text") ?? member(part, "reasoning"))} />;
  if (type === "refusal") return <div class="refusal"><b class="bad">Refusal</b> <Markdown text={shown(member(part, "refusal"))} /></div>;
  const text = member(part, "text");
  if (typeof text === "string") return <Markdown text={text} />;
  if (typeof part === "string") return <Markdown text={part} />;
  if (type === "input_file" || type === "input_video")
    return <p class="note">{type.slice(6)}, not loaded: <Text>{(shown(member(part, "filename")) || urlOf(part, "file_url") || urlOf(part, "video_url")).slice(0, 300)}</Text></p>;
  return <Nested value={part} />;
}

function Reasoning({ text }: { text: string }) {
  return <Fold kind="reasoning" title={<>reasoning <small>{plural(text.length, "character")}</small></>}><Markdown text={text} /></Fold>;
}

export function Content({ content }: { content: Value | undefined }) {
  if (Array.isArray(content)) return <>{content.map((part) => <Part part={part} />)}</>;
  if (content === undefined || content === null) return <p class="note">empty</p>;
  return typeof content === "string" ? <Markdown text={content} /> : <Nested value={content} />;
}

/** Output of a tool: plain text, never Markdown. */
function Output({ content }: { content: Value | undefined }) {
  return typeof content === "string" && content !== "" ? <LongText code text={content} /> : <Content content={content} />;
}

/** Arguments of a tool call as a table, or the text that the model wrote instead. */
function Arguments({ text }: { text: string }) {
  let value: Value;
  try {
    value = parse(text);
  } catch {
    return <LongText code text={text} />;
  }
  if (!composite(value)) return <LongText code text={text} />;
  const entries = Array.isArray(value) ? [] : Object.entries(value);
  if (Object.keys(value).length === 0) return <p class="note">no arguments</p>;
  // Code that a tool runs is shown as code.
  if (entries.length === 1 && typeof entries[0][1] === "string" && /\n/.test(entries[0][1]))
    return <><h5><Text>{entries[0][0]}</Text></h5><Code text={entries[0][1]} language={/cmd|command|bash|shell/.test(entries[0][0]) ? "bash" : "python"} /></>;
  return <Nested value={value} />;
}

export interface Turn { number: number; kind: string; title: string; item: Value; output?: Value; failed: boolean }

const ROLES: Record<string, string> = { custom_task_input_message: "user", custom_task_output_message: "assistant" };

/** The beginning of an item's text, for the outline. */
function beginning(item: Value): string {
  const content = member(item, "content");
  const text = typeof content === "string" ? content : list(content).filter((part) => !/reasoning|summary/.test(shown(member(part, "type")))).map((part) => (typeof part === "string" ? part : shown(member(part, "text") ?? member(part, "refusal") ?? ""))).find((part) => part.trim()) ?? "";
  return text.slice(0, 200).replace(/\s+/g, " ").trim().slice(0, 60);
}

export function turnsOf(items: Value[]): Turn[] {
  const turns: Turn[] = [];
  const calls = new Map<string, Turn>();
  for (const item of items) {
    const type = shown(member(item, "type")), id = shown(member(item, "call_id"));
    if (type === "function_call_output") {
      const call = calls.get(id);
      const status = shown(member(item, "status")), failed = status === "incomplete" || member(item, "error") !== undefined && member(item, "error") !== null;
      if (call && call.output === undefined) {
        call.output = item;
        call.failed ||= failed;
        continue;
      }
      turns.push({ number: turns.length + 1, kind: "output", title: "tool result", item, failed });
      continue;
    }
    if (type === "function_call") {
      const turn: Turn = { number: turns.length + 1, kind: "call", title: shown(member(item, "name")), item, failed: false };
      calls.set(id, turn);
      turns.push(turn);
      continue;
    }
    const role = Object.hasOwn(ROLES, type) ? ROLES[type] : type === "reasoning" ? "assistant" : shown(member(item, "role")) || "other";
    const kind = ["system", "developer", "user", "assistant", "tool"].includes(role) ? role : "other";
    turns.push({ number: turns.length + 1, kind, title: role, item, failed: false });
  }
  return turns;
}

function TurnBody({ turn }: { turn: Turn }) {
  const { item } = turn, type = shown(member(item, "type"));
  if (turn.kind === "call")
    return (
      <>
        <Arguments text={shown(member(item, "arguments"))} />
        {turn.output !== undefined && <div class="output"><h5>result</h5>
          {member(turn.output, "error") ? <div class="error">{composite(member(turn.output, "error")) ? <Nested value={member(turn.output, "error")!} /> : <Text>{shown(member(turn.output, "error"))}</Text>}</div> : null}
          <Output content={member(turn.output, "output")} /></div>}
      </>
    );
  if (turn.kind === "output") return <Output content={member(item, "output")} />;
  if (type === "reasoning")
    return <Reasoning text={[...list(member(item, "summary")), ...list(member(item, "content"))].map((part) => shown(member(part, "text"))).join("\n")} />;
  return <Content content={member(item, "content")} />;
}

/** Number of turns that are created immediately; other turns are created when they come near the visible area. */
const FIRST = 30;

function TurnCard({ turn, prefix, aimed, soon }: { turn: Turn; prefix: string; aimed: boolean; soon: boolean }) {
  const box = useRef<HTMLElement>(null);
  const [near, setNear] = useState(false);
  const made = near || soon || aimed;
  useEffect(() => {
    if (made) return;
    const observer = new IntersectionObserver((entries) => { if (entries.some((entry) => entry.isIntersecting)) setNear(true); }, { rootMargin: "1500px" });
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, [made]);
  useEffect(() => { if (aimed) reveal(box.current); }, [aimed]);
  return (
    <article ref={box} id={`${prefix}${turn.number}`} class={`item ${turn.kind}${soon ? "" : " far"}${turn.failed ? " failed" : ""}${aimed ? " aimed" : ""}`}>
      <h4>{turn.kind === "call" && "tool call "}<Text>{turn.title}</Text>{turn.failed && <span class="bad">✗ failed</span>}{prefix && <a class="turn" href={turnHash(turn.number)} aria-label={`turn ${turn.number}`}>#{turn.number}</a>}</h4>
      {made ? <TurnBody turn={turn} /> : <div class="long"><Text>{beginning(turn.item)}</Text></div>}
    </article>
  );
}

/** Address of a turn in the current sample. */
export function turnHash(number: number): string {
  const names = new URLSearchParams(location.hash.slice(1));
  names.set("turn", String(number));
  return `#${names}`;
}

/** Turns without numbers: of a judge, or of the request of a model call. */
export function Conversation({ items }: { items: Value[] }) {
  const turns = useMemo(() => turnsOf(items), [items]);
  return <div class="chat">{turns.map((turn, index) => <TurnCard turn={turn} prefix="" aimed={false} soon={index < FIRST} />)}</div>;
}

const OUTLINED = 4;

export function Transcript({ items, turn, whole, prefix = "turn-" }: { items: Value[]; turn: number; whole: boolean; prefix?: string }) {
  const turns = useMemo(() => turnsOf(items), [items]);
  const outline = useRef<HTMLElement>(null);
  useEffect(() => {
    const entry = outline.current?.querySelector<HTMLElement>(`li:nth-child(${turn || 1})`);
    if (turn && entry) outline.current!.scrollTop = entry.offsetTop - outline.current!.clientHeight / 2;
  }, [turn]);
  const chat = <div class="chat">{turns.map((one, index) => <TurnCard key={one.number} turn={one} prefix={prefix} aimed={one.number === turn} soon={whole || index < FIRST} />)}</div>;
  if (turns.length < OUTLINED) return chat;
  return (
    <div class="with-outline">
      <nav ref={outline} class="outline screen" aria-label="outline of turns" tabIndex={0}><h4>{count(turns.length)} turns</h4>
        <ol>{turns.map((one) => (
          <li><a class={`${one.kind}${one.failed ? " failed" : ""}`} aria-current={one.number === turn ? "true" : undefined} href={turnHash(one.number)}><span class="turn">{one.number}</span>
            <span>{one.kind === "call" ? <>⚒ <Text>{one.title}</Text></> : <><b><Text>{one.title}</Text></b> <Text>{beginning(one.item)}</Text></>}</span></a></li>
        ))}</ol></nav>
      {chat}
    </div>
  );
}
