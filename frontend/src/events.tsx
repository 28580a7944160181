/** The spans of a conversation on a timeline: agents, model calls, tools. */

import { duration, plural, tokens } from "./format";
import { list, member, Num, shown, type Value } from "./json";
import { Fold, Nested, Text } from "./text";
import { Conversation } from "./transcript";
import { Seconds, Tokens } from "./value";

interface Entry {
  depth: number; name: string; kind: string; start: number | null; end: number | null; note: string; event: Value; failed: boolean;
}

function time(event: Value): number | null {
  const text = member(event, "timestamp");
  const value = typeof text === "string" ? Date.parse(text) : NaN;
  return Number.isFinite(value) ? value / 1000 : null;
}

function seconds(value: Value | undefined): number | null {
  return value instanceof Num ? value.value : null;
}

function entries(events: Value[]): Entry[] {
  const depths = new Map<string, number>();
  const open = new Map<string, Entry>();
  const lines: Entry[] = [];
  for (const event of events) {
    const type = shown(member(event, "type")), span = shown(member(event, "span_id"));
    if (type === "span_end") {
      const entry = open.get(span);
      if (entry) entry.end = time(event);
      continue;
    }
    const start = time(event);
    const parent = type === "span_begin" ? shown(member(event, "parent_span_id")) : span;
    const depth = (depths.get(parent) ?? -1) + 1;
    const failed = member(event, "error") !== undefined && member(event, "error") !== null || type === "error";
    const entry: Entry = { depth, name: type, kind: "other", start, end: null, note: "", event, failed };
    if (type === "span_begin") {
      depths.set(span, depth);
      open.set(span, entry);
      entry.name = shown(member(event, "name"));
      entry.kind = "span";
      entry.note = shown(member(event, "span_type"));
      if (entry.note === entry.name) entry.note = "";
    } else if (type === "model_call_event") {
      entry.name = shown(member(event, "model"));
      entry.kind = "model";
      const used = seconds(member(event, "total_time"));
      if (start !== null && used !== null) entry.end = start + used;
      const usage = (name: string) => { const value = member(event, "usage", name); return value instanceof Num ? tokens(value.value) : "?"; };
      entry.note = `${usage("num_prompt_tokens")} → ${usage("num_completion_tokens")} tokens`;
    } else if (type === "function_call_event") {
      entry.name = shown(member(event, "function"));
      entry.kind = "tool";
      const used = seconds(member(event, "working_time"));
      if (start !== null && used !== null) entry.end = start + used;
    } else if (type === "custom") entry.name = shown(member(event, "name"));
    else if (type === "message_event") continue;
    lines.push(entry);
  }
  return lines;
}

const SHOWN = new Set(["type", "id", "span_id", "parent_span_id", "timestamp", "model", "input_context", "output_items", "error", "usage", "total_time", "working_time"]);

/** All fields of an event that are not shown in other places. */
function remainder(event: Value): Value {
  const members: { [key: string]: Value } = Object.create(null);
  for (const name of Object.keys((event as object | null) ?? {})) {
    const value = member(event, name);
    if (!SHOWN.has(name) && value !== undefined && value !== null) members[name] = value;
  }
  return members;
}

/** A model call: its use and how it ended, then request and reply. */
function ModelCall({ event }: { event: Value }) {
  const request = list(member(event, "input_context")), reply = list(member(event, "output_items"));
  const number = (...names: string[]) => { const value = member(event, ...names); return value instanceof Num ? value.value : null; };
  const input = number("usage", "num_prompt_tokens"), output = number("usage", "num_completion_tokens"), took = number("total_time");
  const reason = ["stop_reason", "finish_reason"].map((name) => member(event, name)).find((value) => typeof value === "string");
  const retries = number("retries") ?? number("num_retries");
  const others = remainder(event);
  return (
    <>
      <ul class="chips">
        <li class="chip">{input === null ? "unknown" : <Tokens value={input} />} input tokens</li>
        <li class="chip">{output === null ? "unknown" : <Tokens value={output} />} output tokens</li>
        {took !== null && <li class="chip"><Seconds value={took} /></li>}
        {reason !== undefined && <li class="chip">stop reason <Text>{shown(reason)}</Text></li>}
        {retries !== null && <li class="chip">{plural(retries, "retry", "retries")}</li>}
      </ul>
      {member(event, "error") ? <p class="error"><Text>{shown(member(event, "error"))}</Text></p> : null}
      {request.length > 0 && <Fold open={request.length < 4} title={`Request: ${plural(request.length, "item")}`}><Conversation items={request} /></Fold>}
      {reply.length > 0 && <><h5>Reply</h5><Conversation items={reply} /></>}
      {Object.keys(others as object).length > 0 && <Fold title="Settings and other fields"><Nested value={others} /></Fold>}
    </>
  );
}

function Detail({ event }: { event: Value }) {
  return shown(member(event, "type")) === "model_call_event" ? <ModelCall event={event} /> : <Nested value={event} />;
}

export function Timeline({ events }: { events: Value[] }) {
  const lines = entries(events);
  if (lines.length === 0) return null;
  const starts = lines.flatMap((line) => (line.start === null ? [] : [line.start]));
  const begin = Math.min(...starts);
  const length = Math.max(...lines.flatMap((line) => [line.start ?? begin, line.end ?? begin])) - begin || 1;
  return (
    <section><h3>Events</h3>
      <ol class="timeline">
        {lines.map((line) => (
          <li class={`${line.kind}${line.failed ? " failed" : ""}`}><Line line={line} begin={begin} length={length} /></li>
        ))}
      </ol>
    </section>
  );
}

function Line({ line, begin, length }: { line: Entry; begin: number; length: number }) {
  const timed = line.start !== null;
  const lasted = timed && line.end !== null ? line.end - line.start! : null;
  const left = timed ? ((line.start! - begin) / length) * 100 : 0;
  return (
    <Fold title={
      <>
        <span class="name" style={{ paddingLeft: `${line.depth * 0.9}rem` }}>
          <span class="kind">{line.kind}</span> <Text>{line.name}</Text> <small><Text>{line.note}</Text></small>
        </span>
        <span class="track" aria-hidden="true">
          {timed && <span class="stretch" style={{ left: `${left}%`, width: `${Math.max(0.4, ((lasted ?? 0) / length) * 100)}%` }} />}
        </span>
        <span class="took">{lasted === null ? "" : duration(lasted)}</span>
      </>}>
      <Detail event={line.event} />
    </Fold>
  );
}
