/** For whoever answers for the result: what was evaluated, every number, and how many samples stand behind it. */

import type { Metric, MetricValue, Result, Row, Summary } from "./data";
import { Figures } from "./figures";
import { Num, shown, type Value } from "./json";
import { Fold, LongText, Text, Wide } from "./text";

export function Status({ status }: { status: string }) {
  const good = status === "success" || status === "held";
  if (status === "superseded") return <span class="status">↻ superseded</span>;
  if (status === "running") return <span class="status">… running</span>;
  return <span class={`status ${good ? "good" : "bad"}`}>{good ? "✓" : "✗"} <Text>{status}</Text></span>;
}

function Evaluations({ summary }: { summary: Summary }) {
  return (
    <>{summary.evaluations.map((evaluation) => (
      <section>
        <h2><small>evaluation</small> <Text>{evaluation.name}</Text> <Status status={evaluation.status} /></h2>
        {evaluation.policies.length > 0 ? (
          <Wide><table>
            <caption>Policies</caption>
            <thead><tr><th scope="col">rule</th><th scope="col">held</th><th scope="col">why</th></tr></thead>
            <tbody>{evaluation.policies.map((rule) => (
              <tr><td><Text>{rule.name}</Text> <small><Text>{`${rule.policy}/${rule.rule}`}</Text></small></td>
                <td><Status status={rule.passed ? "held" : "not held"} /></td><td><Text>{rule.reason}</Text></td></tr>
            ))}</tbody>
          </table></Wide>
        ) : <p class="note">The evaluation has no policies.</p>}
      </section>
    ))}</>
  );
}

const MOST_NUMBERS = 4;

function numbersOf(result: Result): MetricValue[] {
  return (result.metrics ?? []).flatMap((metric) => metric.values);
}

function Overview({ summary, open }: { summary: Summary; open: (number: number) => void }) {
  return (
    <Wide><table>
      <caption>Results</caption>
      <thead><tr><th scope="col">task</th><th scope="col">evaluated</th><th scope="col">status</th><th scope="col">metrics</th>
        <th scope="col" class="number">samples</th><th scope="col" class="number">failed</th><th scope="col" class="number">failed trials</th></tr></thead>
      <tbody>{summary.results.map((result, number) => (
        <tr>
          <td><a href={`#result=${number}`} onClick={(event) => { event.preventDefault(); open(number); }}><Text>{result.title}</Text></a></td>
          <td><Text>{result.model}</Text></td><td><Status status={result.status} /></td>
          <td>{numbersOf(result).slice(0, MOST_NUMBERS).map((value) => (
            <div><Text>{value.label}</Text> <b>{value.text}</b>{value.interval && <small class="nowrap"> {value.interval[0]} to {value.interval[1]}</small>}</div>))}
            {numbersOf(result).length > MOST_NUMBERS && <small>{numbersOf(result).length - MOST_NUMBERS} more below</small>}</td>
          <td class="number">{result.counts?.samples ?? "–"}</td><td class="number">{result.counts?.failed ?? "–"}</td>
          <td class="number">{result.counts ? `${result.counts.failed_trials} of ${result.counts.trials}` : "–"}</td>
        </tr>
      ))}</tbody>
    </table></Wide>
  );
}

function Interval({ value }: { value: MetricValue }) {
  const error = value.reported_error ?? value.error;
  const shown = error === undefined ? null : <small class="nowrap">± {error}</small>;
  if (value.interval === undefined) return <>{shown} <small>no interval: <Text>{value.no_interval ?? "not computed for a single run"}</Text></small></>;
  return <><span class="nowrap">{value.interval[0]} to {value.interval[1]}</span> {shown}</>;
}

function MetricRow({ metric, value }: { metric: Metric; value: MetricValue }) {
  const samples = value.samples, counts = metric.counts;
  const numbers = samples ? [samples.scored, samples.failed, samples.no_value + samples.no_aggregate + samples.unfinished, samples.excluded]
    : [value.scored ?? counts?.scored, undefined, counts?.without, counts?.excluded];
  return (
    <tr>
      <th scope="row"><Text>{value.label}</Text>{value.label === value.name && value.name !== metric.key && metric.key && <small> <Text>{metric.key}</Text></small>}
        {metric.reason && <div class="note"><Text>{metric.reason}</Text></div>}
        {!samples && counts && " *"}</th>
      <td class="number value">{value.text}</td>
      <td class="interval"><Interval value={value} />
        {samples !== undefined && samples.missing_trials > 0 && <div><small>{samples.missing_trials} of {samples.trials} trials are missing</small></div>}
        {value.bounds && <div><small>{value.bounds[0]} if every missing sample or trial had scored worst, {value.bounds[1]} if best</small></div>}</td>
      {numbers.map((count) => <td class="number">{count ?? "–"}</td>)}
      <td><Text>{metric.scorer_name ?? metric.scorer}</Text></td>
    </tr>
  );
}

export function Metrics({ metrics, caption }: { metrics: Metric[]; caption: string }) {
  const methods = [...new Set(metrics.flatMap((metric) => metric.values.flatMap((value) => value.method ?? [])))];
  return (
    <>
      <Wide label={caption}><table class="metrics">
        <caption>{caption}</caption>
        <thead><tr><th scope="col">metric</th><th scope="col" class="number">value</th><th scope="col">95 % interval</th>
          {["scored", "failed", "no score", "excluded"].map((name) => <th scope="col" class="number">{name}</th>)}<th scope="col">scorer</th></tr></thead>
        <tbody>{metrics.flatMap((metric) => metric.values.length === 0
          ? [<tr class="problem"><th scope="row"><Text>{metric.key}</Text></th><td class="number">no value</td>
              <td colSpan={6}><Text>{metric.reason ?? "the result does not say why"}</Text></td></tr>]
          : metric.values.map((value) => <MetricRow metric={metric} value={value} />))}</tbody>
      </table></Wide>
      {metrics.some((metric) => metric.counts && metric.values.some((value) => !value.samples)) && (
        <p class="note">* Which samples are in the number is not known: the counts are those of its scorer.</p>
      )}
      {methods.length > 0 && <p class="note">Intervals: where the number would lie if the task had been made of other samples of the same
        kind; ± is the standard error. Methods: <Text>{methods.join("; ")}</Text>.</p>}
    </>
  );
}

function Counts({ result }: { result: Result }) {
  const counts = result.counts!, several = counts.trials !== counts.samples;
  const stages = result.stages ?? [], rules = result.rules ?? [];
  const stated = counts.stated;
  return (
    <>
      <ul class="tiles">
        <li><b>{counts.samples}</b> samples</li>
        {several && <li><b>{counts.trials}</b> trials</li>}
        <li><b>{counts.scored}</b> scored</li>
        <li class={counts.failed ? "bad" : ""}><b>{counts.failed}</b> failed</li>
        {several && <li class={counts.failed_trials ? "bad" : ""}><b>{counts.failed_trials}</b> of {counts.trials} trials failed</li>}
        {counts.unscored > 0 && <li><b>{counts.unscored}</b> not scored</li>}
        {counts.unfinished > 0 && <li><b>{counts.unfinished}</b> not finished</li>}
        {several && counts.unfinished_trials > 0 && <li><b>{counts.unfinished_trials}</b> of {counts.trials} trials not finished</li>}
        <li><b>{counts.excluded}</b> excluded</li>
        {counts.missing ? <li class="bad"><b>{counts.missing}</b> missing</li> : null}
      </ul>
      {(result.stopped ?? []).length > 0 && <p class="note bad">{result.stopped!.join(", ")}: the list of samples has a filter by stop reason.</p>}
      {stages.length > 0 && (
        <Wide><table><caption>Failures by stage</caption>
          <thead><tr><th scope="col">stage</th><th scope="col" class="number">samples</th><th scope="col">errors</th></tr></thead>
          <tbody>{stages.map(([stage, number, kinds]) => (
            <tr><th scope="row"><Text>{stage}</Text></th><td class="number">{number}</td>
              <td>{kinds.map(([kind, count]) => <div><Text>{kind}</Text> {count}</div>)}</td></tr>
          ))}</tbody>
        </table></Wide>
      )}
      {rules.length > 0 && (
        <Wide><table><caption>Excluded by action rules</caption>
          <thead><tr><th scope="col">rule</th><th scope="col" class="number">samples</th></tr></thead>
          <tbody>{rules.map(([rule, number]) => <tr><th scope="row"><Text>{rule}</Text></th><td class="number">{number}</td></tr>)}</tbody>
        </table></Wide>
      )}
      {stated && (stated.failed !== counts.failed || stated.total !== counts.samples) && (
        <p class="note">The result states {stated.failed} failed of {stated.total}; by its samples it is {counts.failed} of {counts.samples}.</p>
      )}
    </>
  );
}

function Usage({ result }: { result: Result }) {
  const usage = result.usage;
  const times = Object.entries(result.times ?? {}).filter(([, numbers]) => numbers !== null);
  return (
    <>
      {(result.models ?? []).length > 0 && (
        <Wide><table><caption>Calls of models</caption>
          <thead><tr><th scope="col">model</th><th scope="col" class="number">calls</th><th scope="col" class="number">failed</th>
            <th scope="col" class="number">tokens read</th><th scope="col" class="number">tokens written</th><th scope="col" class="number">calls of unknown use</th></tr></thead>
          <tbody>{result.models!.map((use) => (
            <tr><th scope="row"><Text>{use.model}</Text></th><td class="number">{use.calls}</td><td class="number">{use.failed}</td>
              <td class="number">{use.unknown === use.calls ? "unknown" : use.prompt_tokens}</td>
              <td class="number">{use.unknown === use.calls ? "unknown" : use.completion_tokens}</td><td class="number">{use.unknown}</td></tr>
          ))}</tbody>
        </table></Wide>
      )}
      <p>Use as the result states it: {usage ? `${usage.num_samples} samples called a model, ${usage.num_prompt_tokens ?? "an unknown number of"} tokens read, ${usage.num_completion_tokens ?? "an unknown number of"} written.` : "unknown."} The result does not say what it cost.</p>
      {times.length > 0 && (
        <Wide><table><caption>Seconds</caption>
          <thead><tr><th scope="col">of</th>{["number", "least", "median", "95th percentile", "most", "sum"].map((name) => <th scope="col" class="number">{name}</th>)}</tr></thead>
          <tbody>{times.map(([name, numbers]) => (
            <tr><th scope="row">{name}</th>{[numbers!.n, numbers!.min, numbers!.median, numbers!.p95, numbers!.max, numbers!.total].map((text) => <td class="number">{text}</td>)}</tr>
          ))}</tbody>
        </table></Wide>
      )}
    </>
  );
}

type Composite = Value[] | { [key: string]: Value };

function composite(value: Value): value is Composite {
  return value !== null && typeof value === "object" && !(value instanceof Num);
}

/** Members of a list or an object by name; the names of a list are its positions. */
function members(value: Composite): [string, Value][] {
  return Array.isArray(value) ? value.map((item, at) => [String(at), item]) : Object.keys(value).map((name) => [name, value[name]]);
}

const FEW = 8;

/** How many members a value has, with those that `values.py` left out. */
function entries(value: Composite): string {
  const rows = members(value), last = rows.at(-1);
  const left = last && /^(?:\u2026 )?(\d+) more$/.exec(Array.isArray(value) || last[0] === "…" ? shown(last[1]) : "");
  const number = left ? rows.length - 1 + Number(left[1]) : rows.length;
  return number === 1 ? "1 entry" : `${number} entries`;
}

/** A value of a configuration: texts and numbers as they are, anything else as a table that may be folded. */
function Nested({ value }: { value: Value }) {
  if (!composite(value)) return <LongText text={shown(value)} />;
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

function Configuration({ values }: { values: [string, Value][] }) {
  if (values.length === 0) return null;
  return (
    <Wide><table class="pairs"><caption>Configuration</caption><tbody>{values.map(([label, value]) => (
      <tr><th scope="row">{label}</th><td><Fold title={composite(value) ? entries(value) : "value"}><Nested value={value} /></Fold></td></tr>
    ))}</tbody></table></Wide>
  );
}

function OneResult({ result, number, rows }: { result: Result; number: number; rows: Row[] | null | undefined }) {
  return (
    <section class="result" id={`result-${number}`}>
      <h2><Text>{result.title}</Text> <Status status={result.status} /></h2>
      {result.description && <p><Text>{result.description}</Text></p>}
      {result.problems.map((problem) => <div class="error"><Text>{problem}</Text></div>)}
      {(result.errors ?? []).filter((error) => error.stage !== "metric").map((error) => (
        <div class="error"><b><Text>{error.stage ?? "unknown stage"}</Text></b> <Text>{`${error.type}: ${error.message}`}</Text>
          {error.hint && <p>hint: <Text>{error.hint}</Text></p>}</div>
      ))}
      {result.counts && (
        <>
          {(result.metrics ?? []).length > 0 ? <Metrics metrics={result.metrics!} caption={result.unfinished ? "Metrics so far: the run did not finish, these are not final" : "Metrics"} />
            : <p class="note">{result.status === "running" ? "Metrics are computed when the run ends."
              : <>The result has no metrics{result.counts.samples === 0 ? ": it has no samples" : ""}.</>}</p>}
          {(result.runs ?? []).map((metrics, run) => <Metrics metrics={metrics} caption={`Metrics of run ${run + 1}`} />)}
          <Counts result={result} />
          <Wide><table class="pairs"><caption>What was evaluated</caption><tbody>{(result.facts ?? []).map(([label, text]) => (
            <tr><th scope="row">{label}</th><td><LongText text={text} /></td></tr>
          ))}</tbody></table></Wide>
          <Configuration values={result.configuration ?? []} />
          {rows && <Figures rows={rows} labels={result.labels ?? []} />}
          <Usage result={result} />
        </>
      )}
    </section>
  );
}

export function SummaryView({ summary, tables, open }: {
  summary: Summary; tables: Map<number, Row[] | null>; open: (number: number) => void;
}) {
  return (
    <>
      <Evaluations summary={summary} />
      {summary.results.length > 1 && <Overview summary={summary} open={open} />}
      {summary.results.map((result, number) => <OneResult result={result} number={number} rows={tables.get(number)} />)}
    </>
  );
}
