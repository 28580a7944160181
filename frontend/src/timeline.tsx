/** The spans of a conversation on a time line: agents, model calls, tools. */

import { list, member, Num, render, shown, type Value } from "./json";
import { Fold, LongText, Text } from "./text";
import { Conversation } from "./sample";

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
      const usage = (name: string) => shown(member(event, "usage", name) ?? "?");
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

function Detail({ event }: { event: Value }) {
  if (shown(member(event, "type")) !== "model_call_event") return <LongText code text={render(event)} />;
  return (
    <>
      {member(event, "error") ? <p class="error"><Text>{shown(member(event, "error"))}</Text></p> : null}
      <Conversation items={[...list(member(event, "input_context")), ...list(member(event, "output_items"))]} />
    </>
  );
}

export function Timeline({ events }: { events: Value[] }) {
  const lines = entries(events);
  if (lines.length === 0) return null;
  const starts = lines.flatMap((line) => (line.start === null ? [] : [line.start]));
  const begin = Math.min(...starts);
  const length = Math.max(...lines.flatMap((line) => [line.start ?? begin, line.end ?? begin])) - begin || 1;
  return (
    <section><h3>What happened when</h3>
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
        <span class="took">{lasted === null ? "" : `${lasted.toFixed(3)} s`}</span>
      </>}>
      <Detail event={line.event} />
    </Fold>
  );
}
