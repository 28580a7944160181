/** The start page: a matrix of tasks and models, and a list of runs to sort and compare. */

import { Fragment, type ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { MetricValue, Result } from "./data";
import { count, plural } from "./format";
import type { Chosen } from "./server";
import { axisOf, MetricPlot } from "./plots";
import { Empty, Status, Text, Wide } from "./text";
import { Count, Ends, Seconds, Tokens, Value, When } from "./value";

export interface Run {
  id: string; href: string; title: string; task: string; model: string; dataset?: string; engine?: string | null; status: string; /** engine of a log that is not a result */ log?: string | null;
  metric?: MetricValue; more: number; samples?: number; failed?: number; scored?: number; tokens?: number | null;
  started?: number; seconds?: number; changed?: number; file: string; size?: number;
  /** finished and total trials of a run in progress */ progress?: { done: number; total: number | null };
  /** reference for a comparison */ ref?: string; problem?: string;
}

/** A result of a page as a run of the start page. */
export function runOf(result: Result, id: string, href: string): Run {
  const values = (result.metrics ?? []).flatMap((metric) => metric.values);
  const models = result.models ?? [];
  const known = models.length > 0 && models.every((use) => use.unknown === 0);
  return {
    id, href, title: result.title, task: result.task, model: result.model, dataset: result.dataset ?? undefined, engine: result.engine,
    status: result.status, metric: values[0], more: Math.max(0, values.length - 1),
    samples: result.counts?.samples, failed: result.counts?.failed, scored: result.counts?.scored,
    tokens: known ? models.reduce((sum, use) => sum + use.prompt_tokens + use.completion_tokens, 0) : null,
    started: result.started ?? undefined, seconds: result.seconds ?? undefined, file: result.file ?? result.name,
    problem: result.counts ? undefined : result.problems[0],
  };
}

const when = (run: Run) => run.started ?? run.changed ?? 0;

const folderOf = (run: Run) => run.file.replace(/[^/]*$/, "");

/** Whether a run is the engine log of a result next to it. */
function isLogOf(run: Run, runs: Run[]): boolean {
  return !!run.log && run.status !== "running" && runs.some((one) => !one.log && one.title === run.title && one.model === run.model && folderOf(one) === folderOf(run));
}

function Cell({ runs }: { runs: Run[] }) {
  const [run] = runs;
  if (!run) return <small aria-label="not run">–</small>;
  const axis = run.metric ? axisOf([run.metric]) : null;
  const others = runs.filter((one) => one !== run && !isLogOf(one, runs)).length;
  return (
    <a class="cell" href={run.href}>
      {run.metric ? <><b><Value text={run.metric.text} scale={run.metric.scale} /></b> <small><Text>{run.metric.label}</Text></small><MetricPlot value={run.metric} axis={axis} /></>
        : <Status status={run.status} />}
      <span class="facts">
        {run.metric?.interval && <span><Ends low={run.metric.interval[0]} high={run.metric.interval[1]} scale={run.metric.scale} /></span>}
        {run.samples !== undefined && <span>{plural(run.samples, "sample")}</span>}
        {!!run.failed && <span class="bad">✗ {count(run.failed)} failed</span>}
        {run.metric && run.status !== "success" && <Status status={run.status} />}
        {when(run) > 0 && <span><When seconds={when(run)} aged /></span>}
        {others > 0 && <span>{plural(others, "other run")}</span>}
      </span>
    </a>
  );
}

export const MOST_CHOSEN = 6;

/** Results selected for a comparison, and the address of a comparison. */
export interface Choice { picked: Chosen[]; change: (results: Chosen[]) => void; href: (refs: string[]) => string | null }

/** Selected results with a link to the comparison. */
export function Tray({ results, change, href }: { results: Chosen[]; change: (results: Chosen[]) => void; href: Choice["href"] }) {
  if (results.length === 0) return null;
  const address = results.length > 1 ? href(results.map((one) => one.ref)) : null;
  return (
    <p class="tray" role="status">
      <span>{results.length === 1 ? "Chosen for a comparison: " : "Compare "}
        {results.map((one, place) => <>{place > 0 && " with "}<b><Text>{one.name}</Text></b></>)}{results.length === 1 && ". Choose another one."}</span>
      {address !== null ? <a class="button primary" href={address}>Compare</a> : results.length > 1 && <span>: this page compares results of the same task.</span>}
      <button onClick={() => change([])}>Clear</button>
    </p>
  );
}

/** Link to the comparison of the newest run of each model of a task. */
function CompareRow({ cells, choice }: { cells: Run[][]; choice?: Choice }) {
  const refs = cells.flatMap((runs) => (runs[0]?.status === "running" ? [] : runs[0]?.ref ?? [])).slice(0, MOST_CHOSEN);
  const address = choice && refs.length > 1 ? choice.href(refs) : null;
  return address === null || address === undefined ? null : <div><a href={address}>Compare {count(refs.length)} models</a></div>;
}

function Matrix({ runs, choice }: { runs: Run[]; choice?: Choice }) {
  const tasks = [...new Map(runs.map((run) => [run.title, run.task]))];
  const models = [...new Set(runs.map((run) => run.model))];
  if (runs.length < 2 || tasks.length > 60 || models.length > 24) return null;
  return (
    <section>
      <Wide label="tasks and models"><table class="matrix stacked"><caption>Tasks and models</caption>
        <thead><tr><th scope="col">task</th>{models.map((model) => <th scope="col"><Text>{model || "no model"}</Text></th>)}</tr></thead>
        <tbody>{tasks.map(([title, task]) => {
          const cells = models.map((model) => runs.filter((run) => run.title === title && run.model === model).sort((a, b) => Number(!!a.log) - Number(!!b.log) || when(b) - when(a)));
          return (
            <tr><th scope="row"><Text>{title}</Text>{task !== title && <div><small><Text>{task}</Text></small></div>}<CompareRow cells={cells} choice={choice} /></th>
              {cells.map((inCell, place) => <td class={inCell.length ? "" : "blank"} data-label={models[place] || "no model"}><Cell runs={inCell} /></td>)}</tr>
          );
        })}</tbody></table></Wide>
      <p class="note">Each cell is the newest run: its first metric, the 95 % interval as a bar on the scale of the metric, and the number of samples.</p>
    </section>
  );
}

interface Heading { name: string; key: (run: Run) => string | number | undefined; numeric?: boolean; optional?: boolean }
const HEADINGS: Heading[] = [
  { name: "status", key: (run) => run.status },
  { name: "task", key: (run) => run.title },
  { name: "model", key: (run) => run.model },
  { name: "dataset", key: (run) => run.dataset, optional: true },
  { name: "metric", key: (run) => (run.metric ? Number(run.metric.text) : undefined), numeric: true },
  { name: "samples", key: (run) => run.samples, numeric: true },
  { name: "failed", key: (run) => run.failed, numeric: true },
  { name: "tokens", key: (run) => run.tokens ?? undefined, numeric: true, optional: true },
  { name: "started", key: (run) => when(run) || undefined },
  { name: "took", key: (run) => run.seconds, numeric: true, optional: true },
  { name: "file", key: (run) => run.file },
];

export function ordered(runs: Run[], name: string, descending: boolean): Run[] {
  const heading = HEADINGS.find((one) => one.name === name)!;
  const collator = new Intl.Collator("en", { numeric: true });
  return [...runs].sort((a, b) => {
    const x = heading.key(a), y = heading.key(b);
    if (x === undefined || y === undefined) return Number(x === undefined) - Number(y === undefined);
    const order = typeof x === "number" && typeof y === "number" ? x - y : collator.compare(String(x), String(y));
    return descending ? -order : order;
  });
}

function Line({ run, headings, pick, picked }: { run: Run; headings: Heading[]; pick?: (run: Run, on: boolean) => void; picked: boolean }) {
  const cells: Record<string, ComponentChildren> = {
    status: <><Status status={run.status} />{run.progress && run.status === "running" && <div><Progress {...run.progress} /></div>}</>,
    task: <a href={run.href}><Text>{run.title}</Text></a>,
    model: run.model ? <Text>{run.model}</Text> : <small>no model</small>,
    dataset: run.dataset && <Text>{run.dataset}</Text>,
    metric: run.metric ? <><b><Value text={run.metric.text} scale={run.metric.scale} /></b><div><small><Text>{run.metric.label}</Text>{run.more > 0 && `, ${run.more} more`}</small></div></> : "–",
    samples: <Count value={run.samples} />,
    failed: run.failed ? <span class="bad"><Count value={run.failed} /></span> : <Count value={run.failed} />,
    tokens: run.tokens === null || run.tokens === undefined ? "–" : <Tokens value={run.tokens} />,
    started: when(run) ? <When seconds={when(run)} aged /> : "–",
    took: run.seconds === undefined ? "–" : <Seconds value={run.seconds} />,
    file: <><Text>{run.file}</Text>{run.log && <div>{run.log} log</div>}</>,
  };
  return (
    <tr>
      {pick && <td class="slim" data-label="compare">{run.ref && <input type="checkbox" aria-label={`compare ${run.title}, ${run.model}, ${run.file}`} checked={picked} onChange={(event) => pick(run, event.currentTarget.checked)} />}</td>}
      {headings.map(({ name, numeric }) => name === "task" ? <th scope="row">{cells[name]}</th>
        : <td class={`${numeric ? "number" : name === "file" || name === "model" ? name : "slim"}`} data-label={name}><div>{cells[name]}</div></td>)}
    </tr>
  );
}

export function Progress({ done, total }: { done: number; total: number | null }) {
  if (!total) return <small>{plural(done, "trial")} done </small>;
  return <span class="nowrap"><span class="progress" role="progressbar" aria-label="progress" aria-valuemin={0} aria-valuemax={total} aria-valuenow={done}><span style={{ width: `${Math.min(100, (done / total) * 100)}%` }} /></span><small>{count(done)} of {count(total)} </small></span>;
}

function Runs({ runs, caption, pick, isPicked }: { runs: Run[]; caption: string; pick?: (run: Run, on: boolean) => void; isPicked: (run: Run) => boolean }) {
  const [sort, setSort] = useState<[name: string, descending: boolean]>(["started", true]);
  const headings = HEADINGS.filter((heading) => !heading.optional || runs.some((run) => heading.key(run) !== undefined));
  const lines = useMemo(() => ordered(runs, ...sort), [runs, ...sort]);
  return (
    <Wide label={caption}><table class="listed stacked folder"><caption>{caption} <small>{count(runs.length)}</small></caption>
      <thead><tr>{pick && <th scope="col">compare</th>}{headings.map(({ name, numeric }) => (
        <th scope="col" class={numeric ? "number" : ""} aria-sort={sort[0] === name ? (sort[1] ? "descending" : "ascending") : "none"}>
          <button onClick={() => setSort([name, sort[0] === name ? !sort[1] : numeric === true || name === "started"])}>{name}{sort[0] === name ? (sort[1] ? " ↓" : " ↑") : ""}</button></th>
      ))}</tr></thead>
      <tbody>{lines.map((run) => <Line key={run.id} run={run} headings={headings} pick={pick} picked={isPicked(run)} />)}</tbody></table></Wide>
  );
}

/** Matrix and list of runs; superseded runs are folded. */
export function Start({ runs, choice }: { runs: Run[]; choice?: Choice }) {
  const superseded = runs.filter((run) => run.status === "superseded"), latest = runs.filter((run) => run.status !== "superseded");
  const logs = latest.filter((run) => isLogOf(run, latest)), current = latest.filter((run) => !logs.includes(run));
  if (runs.length === 0) return <Empty title="No results yet." />;
  const pick = choice && ((run: Run, on: boolean) => {
    const others = choice.picked.filter((one) => one.ref !== run.ref);
    choice.change(on ? [...others, { ref: run.ref!, name: run.model ? `${run.title} · ${run.model}` : run.title }].slice(-MOST_CHOSEN) : others);
  });
  const shared = { pick, isPicked: (run: Run) => choice?.picked.some((one) => one.ref === run.ref) ?? false };
  return (
    <Fragment>
      <Matrix runs={current.filter((run) => run.metric || run.samples !== undefined || run.status === "running")} choice={choice} />
      {current.length > 0 && <Runs runs={current} caption="Runs" {...shared} />}
      {logs.length > 0 && <details class="section"><summary>{plural(logs.length, "engine log")} of these results</summary><Runs runs={logs} caption="Engine logs" {...shared} /></details>}
      {superseded.length > 0 && <details class="section"><summary>{plural(superseded.length, "superseded run")}</summary><Runs runs={superseded} caption="Superseded runs" {...shared} /></details>}
    </Fragment>
  );
}
