/** One sample: its conversation as people read chats, its scores, what went wrong, what happened when. */

import { useEffect, useState } from "preact/hooks";
import { readSample, placeOf, type Result, type Row, type Summary } from "./data";
import { list, member, Num, render, shown, type Value } from "./json";
import { Fold, LongText, Text } from "./text";
import { Diff } from "./diff";
import { Timeline } from "./timeline";

const IMAGE = /^data:image\/(?:png|jpeg|gif|webp|avif|bmp);base64,[A-Za-z0-9+/=\s]*$/;

function Image({ url }: { url: string }) {
  if (IMAGE.test(url)) return <img src={url} alt="image of the log" loading="lazy" />;
  return <p class="note">an image, not loaded: <Text>{url.slice(0, 300)}</Text></p>;
}

function Part({ part }: { part: Value }) {
  const type = shown(member(part, "type"));
  const url = (name: string) => {
    const value = member(part, name);
    return typeof value === "string" ? value : shown(member(value, "url"));
  };
  if (type === "input_image" || type === "image_url" || type === "image") return <Image url={url("image_url")} />;
  if (type === "reasoning_text" || type === "reasoning" || type === "summary_text")
    return <Reasoning text={shown(member(part, "text") ?? member(part, "reasoning"))} />;
  if (type === "refusal") return <div class="refusal"><b>refusal</b> <LongText text={shown(member(part, "refusal"))} /></div>;
  const text = member(part, "text");
  if (typeof text === "string") return <LongText text={text} />;
  if (typeof part === "string") return <LongText text={part} />;
  if (type === "input_file" || type === "input_video")
    return <p class="note">{type.slice(6)}, not loaded: <Text>{(shown(member(part, "filename")) || url("file_url") || url("video_url")).slice(0, 300)}</Text></p>;
  return <LongText code text={render(part)} />;
}

function Reasoning({ text }: { text: string }) {
  return <details class="reasoning"><summary>reasoning</summary><LongText text={text} /></details>;
}

function Content({ content }: { content: Value | undefined }) {
  if (Array.isArray(content)) return <>{content.map((part) => <Part part={part} />)}</>;
  if (content === undefined || content === null) return <p class="note">empty</p>;
  return typeof content === "string" ? <LongText text={content} /> : <LongText code text={render(content)} />;
}

function json(text: string): string {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}

export function Item({ item }: { item: Value }) {
  const type = shown(member(item, "type"));
  if (type === "function_call")
    return (
      <article class="item call"><h4>call of <Text>{shown(member(item, "name"))}</Text></h4>
        <LongText code text={json(shown(member(item, "arguments")))} /></article>
    );
  if (type === "function_call_output")
    return <article class="item output"><h4>result</h4><Content content={member(item, "output")} /></article>;
  if (type === "reasoning")
    return (
      <article class="item assistant"><h4>assistant</h4>
        <Reasoning text={[...list(member(item, "summary")), ...list(member(item, "content"))].map((part) => shown(member(part, "text"))).join("\n")} />
      </article>
    );
  const role = type === "custom_task_input_message" ? "user" : type === "custom_task_output_message" ? "assistant"
    : shown(member(item, "role")) || "other";
  const kind = ["system", "developer", "user", "assistant", "tool"].includes(role) ? role : "other";
  return (
    <article class={`item ${kind}`}><h4><Text>{role}</Text></h4><Content content={member(item, "content")} /></article>
  );
}

export function Conversation({ items }: { items: Value[] }) {
  return <div class="chat">{items.map((item) => <Item item={item} />)}</div>;
}

function Table({ value }: { value: Value | undefined }) {
  if (value === null || typeof value !== "object" || Array.isArray(value) || value instanceof Num)
    return <Content content={value} />;
  return (
    <table class="pairs"><tbody>
      {Object.keys(value).map((key) => (
        <tr><th scope="row"><Text>{key}</Text></th>
          <td><LongText code={value[key] !== null && typeof value[key] === "object" && !(value[key] instanceof Num)} text={shown(value[key])} /></td></tr>
      ))}
    </tbody></table>
  );
}

function Errors({ errors }: { errors: Value[] }) {
  return (
    <>{errors.map((error) => (
      <div class="error" role="alert">
        <b>{shown(member(error, "stage") ?? "unknown stage") || "unknown stage"}</b>{" "}
        <Text>{shown(member(error, "error_type"))}</Text>
        <LongText text={shown(member(error, "message"))} />
        {member(error, "hint") ? <p>hint: <Text>{shown(member(error, "hint"))}</Text></p> : null}
      </div>
    ))}</>
  );
}

function Judge({ call }: { call: Value }) {
  return (
    <Fold kind="judge" title={<>judge's prompt and reply: <Text>{shown(member(call, "model"))}</Text></>}>
      <Conversation items={list(member(call, "messages"))} />
      <article class="item assistant"><h4>reply</h4><LongText text={shown(member(call, "reply"))} /></article>
    </Fold>
  );
}

const TRUTHS = ["answer_gt", "ground_truth_correct_choice", "ground_truth", "target", "expected"];
const PREDICTIONS = ["answer_pred", "prediction", "answer", "predicted_choice", "label"];

function Score({ score }: { score: Value }) {
  const metadata = member(score, "metadata");
  const values = member(score, "values");
  const pick = (names: string[]) => names.map((name) => member(metadata, name)).find((value) => value !== undefined && value !== null);
  const truth = pick(TRUTHS), prediction = pick(PREDICTIONS);
  const calls = list(member(metadata, "judge_calls"));
  const reasoning = member(metadata, "reasoning") ?? member(metadata, "explanation");
  const remainder: { [key: string]: Value } = Object.create(null);
  for (const key of Object.keys((metadata as object | null | undefined) ?? {}))
    if (!["judge_calls", "reasoning", "explanation"].includes(key)) remainder[key] = member(metadata, key)!;
  return (
    <section class="score">
      <h4><Text>{shown(member(score, "scorer_key"))}</Text></h4>
      <p class="values">{Object.keys((values as object | null | undefined) ?? {}).map((name) => (
        <span><Text>{name}</Text> <b><Text>{shown(member(values, name))}</Text></b></span>
      ))}</p>
      {truth !== undefined && prediction !== undefined && <Diff truth={shown(truth)} prediction={shown(prediction)} />}
      {reasoning !== undefined && reasoning !== null && <div><h5>reasoning of the judge</h5><LongText text={shown(reasoning)} /></div>}
      {calls.map((call) => <Judge call={call} />)}
      {Object.keys(remainder).length > 0 && (
        <Fold title="how the score came about"><Table value={remainder} /></Fold>
      )}
    </section>
  );
}

function Trial({ trial, sample }: { trial: Value; sample: Value }) {
  const output = member(trial, "solver", "output");
  const several = member(output, "solver_outputs");
  const outputs: [string, Value][] = several === undefined || several === null
    ? (output === undefined || output === null ? [] : [["", output]])
    : Array.isArray(several) ? several.map((one, index) => [`conversation ${index + 1}`, one])
    : Object.entries(several as { [key: string]: Value });
  return (
    <>
      <Errors errors={[...list(member(trial, "errors")), ...(trial === sample ? [] : list(member(sample, "errors")))]} />
      <section><h3>Scores</h3>
        {list(member(trial, "scores")).map((score) => <Score score={score} />)}
        {list(member(trial, "scores")).length === 0 && <p class="note">no scorer gave a value</p>}
      </section>
      <section><h3>Conversation</h3>
        {outputs.map(([name, one]) => (
          <div>{name && <h4><Text>{name}</Text></h4>}
            <Conversation items={list(member(one, "trace", "items") ?? member(one, "messages"))} /></div>
        ))}
        {outputs.length === 0 && <p class="note">the solver handed nothing over</p>}
      </section>
      {outputs.map(([, one]) => <Timeline events={list(member(one, "trace", "events"))} />)}
      <section><h3>Row of the data set</h3><Table value={member(trial, "sample", "data") ?? member(sample, "sample", "data")} /></section>
      <Fold title="the whole trial as JSON"><LongText code text={render(trial)} /></Fold>
    </>
  );
}

const INCOMPLETE = new Set(["content_filter", "refusal", "max_tokens", "model_length"]);

export function SampleView({ summary, result, row, close, step }: {
  summary: Summary; result: Result; row: Row; close: () => void; step: (by: number) => void;
}) {
  const [unpacked, setUnpacked] = useState<{ name: string; value: Value | null } | null>(null);
  const name = JSON.stringify([summary.results.indexOf(result), row.n, row.id]);
  useEffect(() => {
    let current = true;
    readSample(result, row.n).catch(() => undefined).then((value) => {
      if (value === undefined) return; // the server has something newer, and the page is about to have it
      if (!current) return;
      const page = summary.pages?.[placeOf(result, row.n)?.name ?? ""];
      if (value === null && page !== undefined) location.href = page + location.hash;
      else setUnpacked({ name, value });
    });
    return () => { current = false; };
  }, [result, row.n]);
  // Never one sample under the title of another.
  const sample = unpacked?.name === name ? unpacked.value : undefined;
  const trials = list(member(sample ?? null, "trials"));
  const reason = row.z;
  return (
    <div class="sample">
      <nav class="bar" aria-label="samples">
        <button onClick={close} title="Escape">← all samples</button>
        <button onClick={() => step(-1)} title="k or ←">previous</button>
        <button onClick={() => step(1)} title="j or →">next</button>
      </nav>
      <h2 tabIndex={-1} id="sample-title">Sample <Text>{row.id}</Text>{trials.length > 1 ? `, trial ${row.i}` : ""}{row.r !== undefined ? `, run ${row.r}` : ""}</h2>
      {row.o === "not finished" && <p class="note">{summary.run?.alive ? "The trial is in progress: the page shows it up to now." : "The trial did not finish: the page shows it up to its end."}</p>}
      {reason && <p class={`note${INCOMPLETE.has(reason) ? " bad" : ""}`}>stop reason: <b><Text>{reason}</Text></b>{INCOMPLETE.has(reason) && " (the answer may be incomplete, or not the model's own)"}</p>}
      {row.x && <p class="note">kept out of the metrics by: <Text>{row.x.join(", ")}</Text></p>}
      {sample === undefined ? <p role="status">unpacking …</p>
        : sample === null ? <p class="note">the sample is not in this page</p>
        : <Trial key={`${row.n}.${row.t}`} trial={trials.find((trial) => Number(member(trial, "index")) === row.i - 1) ?? trials[row.t] ?? sample} sample={sample} />}
    </div>
  );
}
