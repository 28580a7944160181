/** A complete result. The first screen shows the metrics, dataset, model, uncertainty and failures. */

import { useMemo, useState } from "preact/hooks";
import { hashOf } from "./app";
import { type Breakdown, type Metric, type MetricValue, type Result, type Row, type Summary, type Verification } from "./data";
import { Figures, Stacked } from "./figures";
import { count, measureText, plural } from "./format";
import { composite, type Value as Json } from "./json";
import { axisOf, AxisLabels, MetricPlot, type Axis } from "./plots";
import type { Chosen } from "./server";
import { runOf, Start, Tray } from "./start";
import { entries, Fold, LongText, Nested, Status, Text, Wide } from "./text";
import { Count, Ends, StandardError, Seconds, Tokens, Value, When } from "./value";

function Evaluations({ summary }: { summary: Summary }) {
  return (
    <>{summary.evaluations.map((evaluation) => (
      <section>
        <h2><Text>{evaluation.name}</Text> <Status status={evaluation.status} /></h2>
        {evaluation.policies.length > 0 ? (
          <Wide><table class="stacked">
            <caption>Policies</caption>
            <thead><tr><th scope="col">rule</th><th scope="col">verdict</th><th scope="col">reason</th></tr></thead>
            <tbody>{evaluation.policies.map((rule) => (
              <tr><th scope="row"><Text>{rule.name}</Text> <small><Text>{`${rule.policy}/${rule.rule}`}</Text></small></th>
                <td data-label="verdict"><Status status={rule.passed ? "passed" : "not passed"} /></td><td data-label="reason"><Text>{rule.reason}</Text></td></tr>
            ))}</tbody>
          </table></Wide>
        ) : <p class="note">The evaluation does not define policies.</p>}
      </section>
    ))}</>
  );
}

function Interval({ value }: { value: MetricValue }) {
  const error = value.reported_error ?? value.error;
  const half = error === undefined ? null : <small class="nowrap"><StandardError text={error} scale={value.scale} /></small>;
  if (value.interval === undefined) return <>{half} <small>no interval: <Text>{value.no_interval ?? "not computed for a single run"}</Text></small></>;
  return <><span class="nowrap"><Ends low={value.interval[0]} high={value.interval[1]} scale={value.scale} /></span> {half}</>;
}

function Bounds({ value }: { value: MetricValue }) {
  const samples = value.samples;
  return (
    <>
      {samples !== undefined && samples.missing_trials > 0 && <div><small>{count(samples.missing_trials)} of {plural(samples.trials, "trial")} are missing</small></div>}
      {value.bounds && <div><small>{measureText(value.bounds[0], value.scale)} if every missing sample or trial had scored worst, {measureText(value.bounds[1], value.scale)} if best</small></div>}
    </>
  );
}

function MetricRow({ metric, value, axis }: { metric: Metric; value: MetricValue; axis: Axis | null }) {
  const samples = value.samples, counts = metric.counts;
  const numbers = samples ? [samples.scored, samples.failed, samples.no_value + samples.no_aggregate + samples.unfinished, samples.excluded]
    : [value.scored ?? counts?.scored, undefined, counts?.without, counts?.excluded];
  return (
    <tr>
      <th scope="row"><Text>{value.label}</Text>{value.label === value.name && value.name !== metric.key && metric.key && <small> <Text>{metric.key}</Text></small>}
        {metric.reason && <div class="note"><Text>{metric.reason}</Text></div>}
        {!samples && counts && " *"}</th>
      <td class="number value" data-label="value"><Value text={value.text} scale={value.scale} /></td>
      {axis && <td class="axed" data-label="plot"><MetricPlot value={value} axis={axis} /></td>}
      <td class="interval" data-label="95 % interval"><div><Interval value={value} /><Bounds value={value} /></div></td>
      {numbers.map((number, place) => <td class="number" data-label={COUNTS[place]}><Count value={number} /></td>)}
      <td data-label="scorer"><Text>{metric.scorer_name ?? metric.scorer}</Text></td>
    </tr>
  );
}

const COUNTS = ["scored", "failed", "no score", "excluded"];

export function Metrics({ metrics, caption }: { metrics: Metric[]; caption: string }) {
  const methods = [...new Set(metrics.flatMap((metric) => metric.values.flatMap((value) => value.method ?? [])))];
  const axis = axisOf(metrics.flatMap((metric) => metric.values));
  return (
    <>
      <Wide label={caption}><table class="metrics stacked">
        <caption>{caption}</caption>
        <thead><tr><th scope="col">metric</th><th scope="col" class="number">value</th>{axis && <th scope="col"><span class="hidden">interval as a bar</span><AxisLabels axis={axis} /></th>}<th scope="col">95 % interval</th>
          {COUNTS.map((name) => <th scope="col" class="number">{name}</th>)}<th scope="col">scorer</th></tr></thead>
        <tbody>{metrics.flatMap((metric) => metric.values.length === 0
          ? [<tr class="problem"><th scope="row"><Text>{metric.key}</Text></th><td class="number" data-label="value">no value</td>
              <td colSpan={axis ? 7 : 6} data-label="reason"><Text>{metric.reason ?? "the result does not contain a reason"}</Text></td></tr>]
          : metric.values.map((value) => <MetricRow metric={metric} value={value} axis={axis} />))}</tbody>
      </table></Wide>
      {metrics.some((metric) => metric.counts && metric.values.some((value) => !value.samples)) && (
        <p class="note">* Counts of the scorer: the result does not record which samples are in the metric.</p>
      )}
      {methods.length > 0 && <p class="note">Interval: plausible values of the number if the task had other samples of the same kind.
        Methods: <Text>{methods.join("; ")}</Text>. Point at a number to see all digits.</p>}
    </>
  );
}

function Counts({ result }: { result: Result }) {
  const counts = result.counts!, several = counts.trials !== counts.samples;
  const rules = result.rules ?? [], stated = counts.stated;
  return (
    <>
      <ul class="tiles">
        <li><b>{count(counts.samples)}</b> {counts.samples === 1 ? "sample" : "samples"}</li>
        {several && <li><b>{count(counts.trials)}</b> {counts.trials === 1 ? "trial" : "trials"}</li>}
        <li><b>{count(counts.scored)}</b> scored</li>
        <li class={counts.failed ? "bad" : ""}><b>{count(counts.failed)}</b> failed</li>
        {several && <li class={counts.failed_trials ? "bad" : ""}><b>{count(counts.failed_trials)}</b> of {plural(counts.trials, "trial")} failed</li>}
        {counts.unscored > 0 && <li><b>{count(counts.unscored)}</b> not scored</li>}
        {counts.unfinished > 0 && <li><b>{count(counts.unfinished)}</b> not finished</li>}
        {several && counts.unfinished_trials > 0 && <li><b>{count(counts.unfinished_trials)}</b> of {plural(counts.trials, "trial")} not finished</li>}
        <li><b>{count(counts.excluded)}</b> excluded</li>
        {counts.missing ? <li class="bad"><b>{count(counts.missing)}</b> missing</li> : null}
      </ul>
      {rules.length > 0 && (
        <Wide><table class="stacked"><caption>Excluded by action rules</caption>
          <thead><tr><th scope="col">rule</th><th scope="col" class="number">samples</th></tr></thead>
          <tbody>{rules.map(([rule, number]) => <tr><th scope="row"><Text>{rule}</Text></th><td class="number" data-label="samples"><Count value={number} /></td></tr>)}</tbody>
        </table></Wide>
      )}
      {stated && (stated.failed !== counts.failed || stated.total !== counts.samples) && (
        <p class="note">The result states {count(stated.failed)} failed of {count(stated.total)}; its samples give {count(counts.failed)} of {count(counts.samples)}.</p>
      )}
    </>
  );
}

interface Cause { stage: string; text: string; rows: Row[] }

/** Failed trials with the same cause: messages that differ only in numbers and quoted texts are grouped. */
export function causesOf(rows: Row[]): Cause[] {
  const causes = new Map<string, Cause>();
  for (const row of rows) {
    if (row.o !== "failed") continue;
    for (const [stage, text] of row.e ?? []) {
      const key = `${stage}\n${text.replace(/(["'`]).*?\1/g, "…").replace(/\d+/g, "#").replace(/0x[0-9a-f]+/gi, "#")}`;
      const cause = causes.get(key);
      if (cause === undefined) causes.set(key, { stage, text, rows: [row] });
      else if (cause.rows.at(-1) !== row) cause.rows.push(row);
    }
  }
  return [...causes.values()].sort((a, b) => b.rows.length - a.rows.length);
}

const MOST_LINKS = 12;

function SampleLinks({ rows, number, split }: { rows: Row[]; number: number; split: boolean }) {
  const link = (row: Row) => <><a href={hashOf(row, number, split)}><Text>{row.id.slice(0, 60)}</Text>{row.t > 0 && ` · trial ${row.i}`}</a> </>;
  return <>{rows.slice(0, MOST_LINKS).map(link)}{rows.length > MOST_LINKS && <Fold title={`${count(rows.length - MOST_LINKS)} more`}>{rows.slice(MOST_LINKS).map(link)}</Fold>}</>;
}

function Failures({ result, rows, number, split }: { result: Result; rows: Row[] | null | undefined; number: number; split: boolean }) {
  const causes = useMemo(() => causesOf(rows ?? []), [rows]);
  const incomplete = (rows ?? []).filter((row) => row.z && INCOMPLETE.has(row.z));
  const reasons = [...new Set(incomplete.map((row) => row.z!))];
  if (!rows && (result.stages ?? []).length === 0 && (result.stopped ?? []).length === 0) return null;
  return (
    <>
      {causes.length === 0 && (result.stages ?? []).length > 0 && (
        <Wide><table class="stacked"><caption>Failures by stage</caption>
          <thead><tr><th scope="col">stage</th><th scope="col" class="number">samples</th><th scope="col">errors</th></tr></thead>
          <tbody>{result.stages!.map(([stage, samples, kinds]) => (
            <tr><th scope="row"><Text>{stage}</Text></th><td class="number" data-label="samples"><Count value={samples} /></td>
              <td data-label="errors">{kinds.map(([kind, number]) => <div><Text>{kind}</Text> {count(number)}</div>)}</td></tr>
          ))}</tbody>
        </table></Wide>
      )}
      {causes.length > 0 && (
        <Wide><table class="stacked listed"><caption>Failures by cause</caption>
          <thead><tr><th scope="col">cause</th><th scope="col" class="number">trials</th><th scope="col">stage</th><th scope="col">samples</th></tr></thead>
          <tbody>{causes.map((cause) => (
            <tr><th scope="row"><Text>{cause.text}</Text></th><td class="number" data-label="trials"><Count value={cause.rows.length} /></td>
              <td data-label="stage"><Text>{cause.stage}</Text></td><td data-label="samples"><div><SampleLinks rows={cause.rows} number={number} split={split} /></div></td></tr>
          ))}</tbody>
        </table></Wide>
      )}
      {(result.stopped ?? []).length > 0 && <p class="note bad"><Text>{result.stopped!.join(", ")}</Text></p>}
      {reasons.length > 0 && (
        <Wide><table class="stacked listed"><caption>Answers that a filter or a limit stopped</caption>
          <thead><tr><th scope="col">stop reason</th><th scope="col" class="number">trials</th><th scope="col">samples</th></tr></thead>
          <tbody>{reasons.map((reason) => {
            const stopped = incomplete.filter((row) => row.z === reason);
            return <tr><th scope="row"><Text>{reason}</Text></th><td class="number" data-label="trials"><Count value={stopped.length} /></td><td data-label="samples"><div><SampleLinks rows={stopped} number={number} split={split} /></div></td></tr>;
          })}</tbody>
        </table></Wide>
      )}
    </>
  );
}

/** Stop reasons of answers that may be incomplete or were replaced by a filter. */
export const INCOMPLETE = new Set(["content_filter", "refusal", "max_tokens", "model_length"]);

function Usage({ result }: { result: Result }) {
  const usage = result.usage;
  const times = Object.entries(result.times ?? {}).filter(([, numbers]) => numbers !== null);
  const known = (value: number | null) => (value === null ? "an unknown number of" : count(value));
  return (
    <details class="section" open><summary>Cost and time</summary>
      {(result.models ?? []).length > 0 && (
        <Wide><table class="stacked"><caption>Model calls</caption>
          <thead><tr><th scope="col">model</th><th scope="col" class="number">calls</th><th scope="col" class="number">failed</th>
            <th scope="col" class="number">input tokens</th><th scope="col" class="number">output tokens</th><th scope="col" class="number">calls of unknown use</th></tr></thead>
          <tbody>{result.models!.map((use) => (
            <tr><th scope="row"><Text>{use.model}</Text></th><td class="number" data-label="calls"><Count value={use.calls} /></td><td class="number" data-label="failed"><Count value={use.failed} /></td>
              <td class="number" data-label="input tokens">{use.unknown === use.calls ? "unknown" : <Tokens value={use.prompt_tokens} />}</td>
              <td class="number" data-label="output tokens">{use.unknown === use.calls ? "unknown" : <Tokens value={use.completion_tokens} />}</td><td class="number" data-label="of unknown use"><Count value={use.unknown} /></td></tr>
          ))}</tbody>
        </table></Wide>
      )}
      <p>The result states: {usage ? `${plural(usage.num_samples, "sample")} called a model, ${known(usage.num_prompt_tokens)} input tokens, ${known(usage.num_completion_tokens)} output tokens.` : "usage unknown."} It does not state a cost in money.</p>
      {times.length > 0 && (
        <Wide><table class="stacked"><caption>Time</caption>
          <thead><tr><th scope="col">per</th>{TIMES.map((name) => <th scope="col" class="number">{name}</th>)}</tr></thead>
          <tbody>{times.map(([name, numbers]) => (
            <tr><th scope="row">{name.replace(/^an? /, "")}</th><td class="number" data-label="number"><Count value={numbers!.n} /></td>
              {[numbers!.min, numbers!.median, numbers!.p95, numbers!.max, numbers!.total].map((text, place) => <td class="number" data-label={TIMES[place + 1]}><Seconds value={text} /></td>)}</tr>
          ))}</tbody>
        </table></Wide>
      )}
    </details>
  );
}

const TIMES = ["number", "minimum", "median", "95th percentile", "maximum", "sum"];

function Configuration({ values }: { values: [string, Json][] }) {
  if (values.length === 0) return null;
  return (
    <details class="section configuration"><summary>Configuration</summary>
      <table class="pairs"><tbody>{values.map(([label, value]) => (
        <tr><th scope="row">{label}</th><td><Fold title={composite(value) ? entries(value) : "value"}><Nested value={value} /></Fold></td></tr>
      ))}</tbody></table>
    </details>
  );
}

function Breakdowns({ breakdowns }: { breakdowns: Breakdown[] }) {
  if (breakdowns.length === 0) return null;
  return (
    <section><h3>Breakdown by column</h3>
      <p class="note">The main metric for the samples with each value, on the same axis.</p>
      <div class="figures">{breakdowns.map(({ column, label, parts }) => {
        const axis = axisOf(parts.map((part) => part.value));
        return (
          <Wide label={`breakdown by ${column}`}><table class="bars breakdown-by"><caption><Text>{label}</Text> by <Text>{column}</Text></caption>
            <tbody>{parts.map(({ name, samples, value }) => (
              <tr><th scope="row"><Text>{name === "" ? "(empty)" : name}</Text> <small>{plural(samples, "sample")}</small></th>
                <td class="number"><Value text={value.text} scale={value.scale} />{value.interval && <div><small><Ends low={value.interval[0]} high={value.interval[1]} scale={value.scale} /></small></div>}</td>
                {axis && <td class="axed"><MetricPlot value={value} axis={axis} /></td>}</tr>
            ))}</tbody></table></Wide>
        );
      })}</div>
    </section>
  );
}

function Verified({ verification }: { verification: Verification | undefined }) {
  if (verification === undefined) return <Status status="not checked" />;
  return <Status status={verification.state} />;
}

function Provenance({ verification }: { verification: Verification | undefined }) {
  return (
    <details class="section"><summary>Verification: <Verified verification={verification} /></summary>
      {verification === undefined || verification.levels.length === 0
        ? <p class="note">{verification?.reason ?? "The result was not checked when this page was written."} Check it with <code>aigo-bridge verify RESULT</code>.</p>
        : <Wide><table class="stacked"><caption>Checks</caption><thead><tr><th scope="col">claim</th><th scope="col">verdict</th><th scope="col">details</th></tr></thead>
            <tbody>{verification.levels.map(([title, verdict, details]) => (
              <tr><th scope="row"><Text>{title}</Text></th><td class="slim" data-label="verdict"><Status status={verdict === "proved" ? "verified" : verdict === "failed" ? "failed" : "not checked"}>{verdict}</Status></td>
                <td data-label="details"><Text>{details}</Text></td></tr>
            ))}</tbody></table></Wide>}
    </details>
  );
}

/** Answers to five questions, on the first screen. */
function FirstScreen({ result, number, rows }: { result: Result; number: number; rows: Row[] | null | undefined }) {
  const values = (result.metrics ?? []).flatMap((metric) => metric.values);
  const main = values[0], counts = result.counts!;
  const axis = main ? axisOf([main]) : null;
  const causes = rows ? causesOf(rows).slice(0, 2) : [];
  const running = result.status === "running";
  const problems = counts.failed + counts.unscored + (running ? 0 : counts.unfinished);
  return (
    <div class="cards">
      {main && (
        <section class="card"><h3><Text>{main.label}</Text>{result.unfinished && ", not final"}</h3>
          <p class="big"><Value text={main.text} scale={main.scale} /></p>
          <MetricPlot value={main} axis={axis} />{axis && <AxisLabels axis={axis} />}
          <p>{main.interval ? <>95 % interval <Ends low={main.interval[0]} high={main.interval[1]} scale={main.scale} /></> : <small>no interval: <Text>{main.no_interval ?? "not computed"}</Text></small>}</p>
          <p><small>{main.samples ? `from ${count(main.samples.scored)} of ${plural(counts.samples, "sample")}` : ""}{values.length > 1 && ` · ${plural(values.length - 1, "more metric")} below`}</small></p>
        </section>
      )}
      <section class="card"><h3>Measured</h3>
        <p><b><Text>{result.title}</Text></b>{result.task !== result.title && <small> <Text>{result.task}</Text></small>}</p>
        <p>{result.dataset ? <>on <Text>{result.dataset}</Text>, {plural(counts.samples, "sample")}</> : plural(counts.samples, "sample")}{counts.trials !== counts.samples && `, ${plural(counts.trials, "trial")}`}</p>
        <p>{result.model ? <>by <b><Text>{result.model}</Text></b></> : "without a model"}{result.engine && <small> through <Text>{result.engine}</Text></small>}</p>
        <p><small>{result.started ? <When seconds={result.started} /> : "start unknown"}{typeof result.seconds === "number" && <>, took <Seconds value={result.seconds} /></>}</small></p>
      </section>
      <section class={`card${counts.failed ? " alarm" : ""}`}><h3>Failures</h3>
        <p class="big">{counts.failed ? count(counts.failed) : problems ? count(problems) : running ? "None so far" : "None"}</p>
        <p>{counts.failed ? <>of {plural(counts.samples, "sample")} failed</> : problems ? `of ${plural(counts.samples, "sample")} without a score` : `${plural(counts.scored, "sample")} scored`}{counts.excluded > 0 && `, ${count(counts.excluded)} excluded`}</p>
        {causes.map((cause) => <p><small>{count(cause.rows.length)} × <Text>{cause.text.slice(0, 120)}</Text></small></p>)}
        {counts.failed > 0 && <p class="screen"><a href={`#samples&result=${number}&where=${encodeURIComponent('status == "failed"')}`}>Show failed samples</a></p>}
      </section>
      <section class="card"><h3>Verification</h3>
        <p><Verified verification={result.verification} /></p>
        <p><small><Text>{result.verification?.reason ?? "not checked when this page was written"}</Text></small></p>
        {result.file && <p><small><Text>{result.file}</Text></small></p>}
      </section>
    </div>
  );
}

function OneResult({ result, number, rows, split, heading }: { result: Result; number: number; rows: Row[] | null | undefined; split: boolean; heading: boolean }) {
  return (
    <section class="result" id={`result-${number}`}>
      <h2 class={heading ? "" : "single"}><Text>{result.title}</Text> {heading && result.model && <small><Text>{result.model}</Text></small>} <Status status={result.status} /></h2>
      {result.description && <LongText text={result.description} />}
      {result.problems.map((problem) => <div class="error"><Text>{problem}</Text></div>)}
      {(result.errors ?? []).filter((error) => error.stage !== "metric").map((error) => (
        <div class="error"><b><Text>{error.stage ?? "unknown stage"}</Text></b> <Text>{`${error.type}: ${error.message}`}</Text>
          {error.hint && <p>hint: <Text>{error.hint}</Text></p>}</div>
      ))}
      {result.counts && (
        <>
          <FirstScreen result={result} number={number} rows={rows} />
          {(result.metrics ?? []).length > 0 ? <Metrics metrics={result.metrics!} caption={result.unfinished ? "Metrics so far: the run did not finish, these are not final" : "Metrics"} />
            : <p class="note">{result.status === "running" ? "Metrics are computed when the run ends."
              : <>The result does not contain {result.counts.samples === 0 ? "samples or metrics" : "metrics"}.</>}</p>}
          {(result.runs ?? []).map((metrics, run) => <Metrics metrics={metrics} caption={`Metrics of run ${run + 1}`} />)}
          <Counts result={result} />
          <Failures result={result} rows={rows} number={number} split={split} />
          {rows && rows.length > 0 && <section><h3>Distribution of scores</h3><Figures rows={rows} labels={result.labels ?? []} /></section>}
          <Breakdowns breakdowns={result.breakdowns ?? []} />
          <Usage result={result} />
          <details class="section" open><summary>Evaluation</summary>
            <table class="pairs facts"><tbody>{(result.facts ?? []).map(([label, text]) => (
              <tr><th scope="row">{label}</th><td><LongText text={text} /></td></tr>
            ))}</tbody></table></details>
          <Provenance verification={result.verification} />
          <Configuration values={result.configuration ?? []} />
        </>
      )}
    </section>
  );
}

/** Address of a comparison in the report; `null` if the report does not contain it. */
function comparisonIn(summary: Summary) {
  return (refs: string[]): string | null => {
    const [base, ...others] = refs.map(Number).sort((a, b) => a - b);
    const known = others.every((other) => summary.comparisons?.some((one) => one.base === base && one.new === other));
    return known ? `#compare=${[base, ...others].join(",")}` : null;
  };
}

/** All results of a report. */
function Overview({ summary }: { summary: Summary }) {
  const [picked, change] = useState<Chosen[]>([]);
  const compared = new Set(summary.comparisons?.flatMap((one) => [one.base, one.new]));
  const runs = summary.results.map((one, number) => ({ ...runOf(one, String(number), `#result=${number}`), ref: compared.has(number) ? String(number) : undefined }));
  const href = comparisonIn(summary);
  return (
    <>
      <Tray results={picked} change={change} href={href} />
      <Start runs={runs} choice={compared.size > 0 ? { picked, change, href } : undefined} />
      <Charts results={summary.results} />
    </>
  );
}

/** The charts of `aigo-bridge plot`: each metric of a task with all models on one axis, samples by state, tokens. */
function Charts({ results: all }: { results: Result[] }) {
  const results = all.filter((result) => result.counts && result.status !== "superseded");
  const metrics = new Map<string, { title: string; rows: [Result, MetricValue][] }>();
  for (const result of results)
    for (const value of (result.metrics ?? []).flatMap((metric) => metric.values)) {
      const key = JSON.stringify([result.task, result.title, value.label]);
      (metrics.get(key) ?? metrics.set(key, { title: `${result.title}: ${value.label}`, rows: [] }).get(key)!).rows.push([result, value]);
    }
  const shared = [...metrics.values()].filter(({ rows }) => rows.length > 1);
  if (results.length < 2) return null;
  const several = new Set(results.map((result) => result.title)).size > 1;
  const nameOf = (result: Result) => [several && result.title, result.model || result.name].filter(Boolean).join(" · ");
  const states = results.flatMap((result): [string, [string, number][]][] => [[nameOf(result), STATES.map((state): [string, number] => [state, result.counts![state]]).filter(([, number]) => number > 0)]]);
  const tokens = results.flatMap((result): [string, [string, number][]][] => result.models?.length && result.models.every((use) => use.unknown === 0)
    ? [[nameOf(result), [["input", result.models.reduce((sum, use) => sum + use.prompt_tokens, 0)], ["output", result.models.reduce((sum, use) => sum + use.completion_tokens, 0)]]]] : []);
  return (
    <details class="section" open={shared.length < 7}><summary>Charts</summary>
      <div class="figures">
        {shared.map(({ title, rows }) => <MetricChart title={title} rows={rows} />)}
        <Stacked caption="Samples by state" rows={states} />
        {tokens.length > 0 && <Stacked caption="Tokens" rows={tokens} />}
      </div>
      <p class="note">To save them as files for papers and slides, use <code>aigo-bridge plot</code>.</p>
    </details>
  );
}

const STATES = ["scored", "failed", "unscored", "unfinished", "excluded"] as const;

function MetricChart({ title, rows }: { title: string; rows: [Result, MetricValue][] }) {
  const axis = axisOf(rows.map(([, value]) => value));
  return (
    <Wide><table class="bars"><caption><Text>{title}</Text></caption>
      {axis && <thead><tr><td /><td /><td><AxisLabels axis={axis} /></td></tr></thead>}
      <tbody>{rows.map(([result, value]) => (
        <tr><th scope="row"><Text>{result.model || result.name}</Text></th>
          <td class="number"><Value text={value.text} scale={value.scale} />{value.interval && <div><small><Ends low={value.interval[0]} high={value.interval[1]} scale={value.scale} /></small></div>}</td>
          {axis && <td class="axed"><MetricPlot value={value} axis={axis} /></td>}</tr>
      ))}</tbody></table></Wide>
  );
}

export function SummaryView({ summary, tables, result }: { summary: Summary; tables: Map<number, Row[] | null>; result: number | null }) {
  const several = summary.results.length > 1;
  const split = summary.pages !== undefined;
  if (result !== null && several)
    return <OneResult result={summary.results[result]} number={result} rows={tables.get(result)} split={split} heading />;
  return (
    <>
      <Evaluations summary={summary} />
      {several && <Overview summary={summary} />}
      {summary.results.map((one, number) => <div class={several ? "only-print" : ""}><OneResult result={one} number={number} rows={tables.get(number)} split={split} heading={several} /></div>)}
    </>
  );
}

