/** One sample: question, expected and given answer first, then scores, transcript, events and the row of the dataset. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { readSample, placeOf, type Result, type Row, type Summary } from "./data";
import { Diff, marked } from "./diff";
import { Timeline } from "./events";
import { count, duration } from "./format";
import { composite, list, member, render, shown, type Value } from "./json";
import { Markdown } from "./markdown";
import { INCOMPLETE } from "./summary";
import { CopyButton, Fold, Nested, Raw, reveal, Status, Text, useRaw, Wide } from "./text";
import { Content, Conversation, Transcript } from "./transcript";
import { Value as Number_ } from "./value";

function Errors({ errors }: { errors: Value[] }) {
  return (
    <>{errors.map((error) => (
      <div class="error" role="alert">
        <b>{shown(member(error, "stage") ?? "unknown stage") || "unknown stage"}</b>{" "}
        <Text>{shown(member(error, "error_type"))}</Text>
        <div><Text>{shown(member(error, "message"))}</Text></div>
        {member(error, "hint") ? <p>hint: <Text>{shown(member(error, "hint"))}</Text></p> : null}
      </div>
    ))}</>
  );
}

function Judge({ call }: { call: Value }) {
  return (
    <Fold kind="judge" title={<>Prompt and reply of the judge <Text>{shown(member(call, "model"))}</Text></>}>
      <Conversation items={list(member(call, "messages"))} />
      <article class="item assistant"><h4>reply</h4><Markdown text={shown(member(call, "reply"))} /></article>
    </Fold>
  );
}

const TRUTHS = ["answer_gt", "ground_truth_correct_choice", "ground_truth", "target", "expected"];
const PREDICTIONS = ["answer_pred", "prediction", "answer", "predicted_choice", "label"];

function first(metadata: Value | undefined, names: string[]): Value | undefined {
  return names.map((name) => member(metadata, name)).find((value) => value !== undefined && value !== null);
}

function Score({ score, above }: { score: Value; above: [string, string] | null }) {
  const metadata = member(score, "metadata"), values = member(score, "values");
  const truth = first(metadata, TRUTHS), prediction = first(metadata, PREDICTIONS);
  const calls = list(member(metadata, "judge_calls"));
  const reasoning = member(metadata, "reasoning") ?? member(metadata, "explanation");
  const remainder: { [key: string]: Value } = Object.create(null);
  for (const key of Object.keys((metadata as object | null | undefined) ?? {}))
    if (!["judge_calls", "reasoning", "explanation"].includes(key)) remainder[key] = member(metadata, key)!;
  const isAbove = above !== null && truth !== undefined && prediction !== undefined && above[0] === shown(truth) && above[1] === shown(prediction);
  return (
    <section class="score">
      <h4><Text>{shown(member(score, "scorer_key"))}</Text></h4>
      <p class="values">{Object.keys((values as object | null | undefined) ?? {}).map((name) => (
        <span><Text>{name}</Text> <b>{typeof member(values, name) === "string" ? <Text>{shown(member(values, name))}</Text> : <Number_ text={shown(member(values, name))} />}</b></span>
      ))}</p>
      {!isAbove && truth !== undefined && prediction !== undefined && <Diff one={shown(truth)} two={shown(prediction)} names={["expected", "given"]} />}
      {reasoning !== undefined && reasoning !== null && <div><h5>reasoning of the judge</h5>{composite(reasoning) ? <Nested value={reasoning} /> : <Markdown text={shown(reasoning)} />}</div>}
      {calls.map((call) => <Judge call={call} />)}
      {Object.keys(remainder).length > 0 && <Fold title="Details of the score"><Nested value={remainder} /></Fold>}
    </section>
  );
}

function outputsOf(trial: Value): [string, Value][] {
  const output = member(trial, "solver", "output");
  const several = member(output, "solver_outputs");
  if (several === undefined || several === null) return output === undefined || output === null ? [] : [["", output]];
  return Array.isArray(several) ? several.map((one, index) => [`conversation ${index + 1}`, one]) : Object.entries(several as { [key: string]: Value });
}

const itemsOf = (output: Value) => list(member(output, "trace", "items") ?? member(output, "messages"));

function lastText(outputs: [string, Value][], role: string): Value | undefined {
  for (const [, output] of [...outputs].reverse())
    for (const item of [...itemsOf(output)].reverse()) {
      const type = shown(member(item, "type"));
      if (shown(member(item, "role")) === role || type === (role === "user" ? "custom_task_input_message" : "custom_task_output_message")) return member(item, "content");
    }
  return undefined;
}

export function plain(content: Value | undefined): string {
  if (content === undefined || content === null) return "";
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.filter((part) => !/reasoning|summary/.test(shown(member(part, "type")))).map((part) => (typeof part === "string" ? part : shown(member(part, "text") ?? member(part, "refusal") ?? ""))).filter((text) => text !== "").join("\n");
  return shown(content);
}

/** Question, expected and given answer of a sample, from the first score that contains them. */
export function answersOf(trial: Value): { question: Value | undefined; truth: string | undefined; given: string | undefined; answer: string } {
  const outputs = outputsOf(trial);
  const scores = list(member(trial, "scores"));
  const truth = scores.map((score) => first(member(score, "metadata"), TRUTHS)).find((value) => value !== undefined);
  const judged = (score: Value) => member(score, "metadata", "judge_calls") !== undefined && member(score, "metadata", "judge_calls") !== null;
  const given = scores.filter((score) => !judged(score)).map((score) => first(member(score, "metadata"), PREDICTIONS)).find((value) => value !== undefined);
  return {
    question: lastText(outputs, "user"), answer: plain(lastText(outputs, "assistant")),
    truth: truth === undefined ? undefined : shown(truth), given: given === undefined ? undefined : shown(given),
  };
}

function Top({ trial }: { trial: Value }) {
  const { question, truth, given, answer } = answersOf(trial);
  const shownGiven = given ?? answer;
  const raw = useRaw();
  const [left, right] = truth !== undefined && shownGiven !== "" ? marked(truth, shownGiven) : [truth !== undefined && <Markdown text={truth} />, shownGiven !== "" ? <Markdown text={shownGiven} /> : <p class="note">no answer</p>];
  return (
    <div class="top">
      <section tabIndex={0} aria-label="question"><h3>Question</h3>{question === undefined ? <p class="note">no question in the transcript</p> : typeof question === "string" && raw ? <Text>{question}</Text> : <Content content={question} />}</section>
      {truth !== undefined && <section tabIndex={0} aria-label="expected answer"><h3>Expected</h3>{left}</section>}
      <section tabIndex={0} aria-label="given answer"><h3>Given{truth !== undefined && truth === shownGiven ? " (the same)" : ""}</h3>{right}
        {given !== undefined && answer !== "" && answer !== given && <Fold title="Whole answer"><Markdown text={answer} /></Fold>}</section>
    </div>
  );
}

function Trial({ trial, sample, turn, whole }: { trial: Value; sample: Value; turn: number; whole: boolean }) {
  const outputs = outputsOf(trial);
  const { truth, given, answer } = answersOf(trial);
  const scores = list(member(trial, "scores"));
  const data = member(trial, "sample", "data") ?? member(sample, "sample", "data");
  return (
    <>
      <Errors errors={[...list(member(trial, "errors")), ...(trial === sample ? [] : list(member(sample, "errors")))]} />
      <Top trial={trial} />
      <section id="scores"><h3>Scores</h3>
        {scores.map((score) => <Score score={score} above={truth === undefined ? null : [truth, given ?? answer]} />)}
        {scores.length === 0 && <p class="note">No scorer gave a value.</p>}
      </section>
      <section id="transcript"><h3>Transcript</h3>
        {outputs.map(([name, one], place) => (
          <div>{name && <h4><Text>{name}</Text></h4>}<Transcript items={itemsOf(one)} turn={place === 0 ? turn : 0} whole={whole} prefix={place === 0 ? "turn-" : `turn-${place}-`} /></div>
        ))}
        {outputs.length === 0 && <p class="note">The solver returned no transcript.</p>}
      </section>
      <div id="events">{outputs.map(([, one]) => <Timeline events={list(member(one, "trace", "events"))} />)}</div>
      <section id="row"><h3>Dataset row</h3>{data === undefined || data === null ? <p class="note">no row</p> : <Nested value={data} />}</section>
      <Fold title="All fields of the trial"><Nested value={trial} /></Fold>
    </>
  );
}

/** The trials of a sample next to each other. */
function Trials({ trials, row, link }: { trials: Value[]; row: Row; link: (index: number) => string }) {
  if (trials.length < 2) return null;
  const position = (trial: Value, place: number) => Number(shown(member(trial, "index") ?? String(place))) + 1;
  return (
    <Wide label="trials"><table class="trials stacked"><caption>Trials</caption><thead><tr><th scope="col">trial</th><th scope="col">given answer</th><th scope="col">scores</th></tr></thead>
      <tbody>{trials.map((trial, place) => {
        const { given, answer } = answersOf(trial), number = position(trial, place);
        return (
          <tr><th scope="row">{number === row.i ? <b aria-current="true">trial {number}</b> : <a href={link(number)}>trial {number}</a>}</th>
            <td data-label="given answer">{list(member(trial, "errors")).length > 0 ? <Status status="failed" /> : <Text>{(given ?? answer).slice(0, 300)}</Text>}</td>
            <td data-label="scores">{list(member(trial, "scores")).map((score) => <div><small><Text>{shown(member(score, "scorer_key"))}</Text></small> {Object.entries((member(score, "values") as Record<string, Value> | null) ?? {}).map(([name, value]) => <><Text>{name}</Text> <b><Number_ text={shown(value)} /></b> </>)}</div>)}</td></tr>
        );
      })}</tbody></table></Wide>
  );
}

/** Mark matches in the sample and scroll from one to the next. */
function useFind(text: string, step: number, ready: unknown): string {
  const [state, setState] = useState("");
  useEffect(() => {
    const registry = (CSS as unknown as { highlights?: Map<string, unknown> }).highlights;
    registry?.delete("found");
    const needle = text.toLowerCase();
    if (needle.length < 2) return setState("");
    const ranges: Range[] = [];
    const root = document.querySelector(".sample .body");
    const walker = root && document.createTreeWalker(root, NodeFilter.SHOW_TEXT, (node) => (node.parentElement?.closest(".outline, summary, button") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
    for (let node = walker?.nextNode(); node; node = walker!.nextNode()) {
      const content = node.nodeValue!.toLowerCase();
      for (let at = content.indexOf(needle); at >= 0; at = content.indexOf(needle, at + needle.length)) {
        if (at + needle.length > node.nodeValue!.length) break;
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + needle.length);
        ranges.push(range);
      }
    }
    const Highlight_ = (globalThis as unknown as { Highlight?: new (...ranges: Range[]) => unknown }).Highlight;
    if (registry && Highlight_ && ranges.length > 0) registry.set("found", new Highlight_(...ranges.slice(0, 5000)));
    if (ranges.length > 0) {
      const place = ((step % ranges.length) + ranges.length) % ranges.length;
      ranges[place].startContainer.parentElement?.scrollIntoView({ block: "center" });
      setState(`${count(place + 1)} of ${count(ranges.length)}`);
    } else setState("not found");
    return () => { registry?.delete("found"); };
  }, [text, step, ready]);
  return state;
}

const SECTIONS = [["scores", "Scores"], ["transcript", "Transcript"], ["events", "Events"], ["row", "Dataset row"]];

function quoted(text: string): string {
  return /^[\w./:@=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

export function SampleView({ summary, result, row, close, step, place, turn, link }: {
  summary: Summary; result: Result; row: Row; close: () => void; step: (by: number) => void; place: string; turn: number; link: (trial: number) => string;
}) {
  const [unpacked, setUnpacked] = useState<{ name: string; value: Value | null } | null>(null);
  const [raw, setRaw] = useState(false);
  const [find, setFind] = useState("");
  const [finding, setFinding] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  const name = JSON.stringify([summary.results.indexOf(result), row.n, row.id]);
  useEffect(() => {
    let current = true;
    readSample(result, row.n).catch(() => undefined).then((value) => {
      if (value === undefined) return; // the server has newer data, and the page will receive it
      if (!current) return;
      const page = summary.pages?.[placeOf(result, row.n)?.name ?? ""];
      if (value === null && page !== undefined) location.href = page + location.hash;
      else setUnpacked({ name, value });
    });
    return () => { current = false; };
  }, [result, row.n]);
  // A sample never appears under the title of another sample.
  const sample = unpacked?.name === name ? unpacked.value : undefined;
  const trials = useMemo(() => list(member(sample ?? null, "trials")), [sample]);
  const found = useFind(find, finding, sample);
  useEffect(() => {
    const keys = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || (event.target as HTMLElement).closest?.("input, select, textarea")) return;
      if (event.key === "r") setRaw((before) => !before);
      else if (event.key === "/") { event.preventDefault(); field.current?.focus(); }
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);
  const reason = row.z;
  const trial = sample ? trials.find((one) => Number(member(one, "index")) === row.i - 1) ?? trials[row.t] ?? sample : null;
  return (
    <div class="sample">
      <nav class="bar" aria-label="samples">
        <button onClick={close} title="Escape">← All samples</button>
        <button onClick={() => step(-1)} title="k or ←">Previous</button>
        <button onClick={() => step(1)} title="j or →">Next</button>
        <span class="where-am-i">{place}</span>
        <span class="end">
          <input ref={field} type="search" aria-label="search in this sample" placeholder="search here (/)" value={find} onInput={(event) => { setFinding(0); setFind(event.currentTarget.value); }}
            onKeyDown={(event) => { if (event.key === "Enter") { event.preventDefault(); setFinding(finding + (event.shiftKey ? -1 : 1)); } }} /> <small role="status">{found}</small>
          <button aria-pressed={raw} onClick={() => setRaw(!raw)} title="r">Raw text</button>
          {trial && <CopyButton text={() => render(trial)}>Copy JSON</CopyButton>}
          <CopyButton text={() => `aigo-bridge show ${quoted(result.file ?? result.name)} --sample ${quoted(row.id)} --full`}>Copy command</CopyButton>
        </span>
      </nav>
      <h2 tabIndex={-1} id="sample-title">Sample <Text>{row.id}</Text>{trials.length > 1 ? `, trial ${row.i}` : ""}{row.r !== undefined ? `, run ${row.r}` : ""}</h2>
      <ul class="chips">
        <li class="chip"><Status status={row.o === "failed" ? "failed" : row.o === "not finished" ? "not finished" : row.x ? "excluded" : row.o === "unscored" ? "not scored" : "scored"} /></li>
        {reason && <li class="chip">stop reason <Text>{reason}</Text></li>}
        {row.w !== undefined && <li class="chip">{duration(Number(row.w))}</li>}
        {row.x && <li class="chip">excluded by <Text>{row.x.join(", ")}</Text></li>}
      </ul>
      {trial && <nav class="row sections" aria-label="sections of the sample">{SECTIONS.map(([id, name]) => <button class="link" onClick={() => reveal(document.getElementById(id))}>{name}</button>)}</nav>}
      {row.o === "not finished" && <p class="note">{summary.run?.alive ? "The trial is in progress: the page shows it up to now." : "The trial did not finish: the page shows it up to its end."}</p>}
      {reason && INCOMPLETE.has(reason) && <p class="note bad">The answer may be incomplete, or not the model's own: stop reason <b><Text>{reason}</Text></b>.</p>}
      <div class="body"><Raw.Provider value={raw}>
        {sample === undefined ? <p role="status">unpacking …</p>
          : sample === null || trial === null ? <p class="note">The sample is not on this page.</p>
          : <><Trials trials={trials} row={row} link={link} /><Trial key={`${row.n}.${row.t}`} trial={trial} sample={sample} turn={turn} whole={find.length > 1} /></>}
      </Raw.Provider></div>
    </div>
  );
}
