/** Pages of results. The fragment of the URL selects the view. */

import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ReportComparison } from "./comparison";
import { readRows, type Row, type Summary } from "./data";
import { SampleView } from "./sample";
import { EVERYTHING, Samples, type Filter } from "./samples";
import { SummaryView } from "./summary";
import { count, plural } from "./format";
import { Empty, Text } from "./text";

interface Place {
  view: "summary" | "samples" | "sample" | "compare"; /** results that are compared */ compared: number[]; result: number; /** whether one result is named */ one: boolean; sample: string; trial: number; run: number | undefined; n: number; turn: number;
  /** filter of the samples */ where: string; search: string;
}

export function placeOfHash(hash: string): Place {
  const names = new URLSearchParams(hash.replace(/^#/, ""));
  const sample = names.get("sample");
  const number = (name: string) => Math.max(0, Number.parseInt(names.get(name) ?? "0", 10) || 0);
  return {
    view: sample !== null ? "sample" : names.has("samples") ? "samples" : names.has("compare") ? "compare" : "summary",
    compared: (names.get("compare") ?? "").split(",").flatMap((text) => (/^\d+$/.test(text) ? [Number(text)] : [])),
    result: number("result"), one: names.has("result"), sample: sample ?? "", trial: Math.max(1, number("trial")), run: names.has("run") ? number("run") : undefined, n: number("n"), turn: number("turn"),
    where: names.get("where") ?? "", search: names.get("search") ?? "",
  };
}

export function hashOf(row: Row, result: number, split = false): string {
  const names = new URLSearchParams({ sample: row.id });
  if (result) names.set("result", String(result));
  if (row.i !== 1) names.set("trial", String(row.i));
  if (row.r !== undefined) names.set("run", String(row.r));
  if (split) names.set("n", String(row.n));
  return `#${names}`;
}

function usePlace(): [Place, (hash: string) => void] {
  const [place, setPlace] = useState(() => placeOfHash(location.hash));
  useEffect(() => {
    const follow = () => setPlace(placeOfHash(location.hash));
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return [place, (hash) => { location.hash = hash; }];
}

/** Rows of each result: `null` if they are on another page, missing while they are unpacked. */
export type Tables = Map<number, Row[] | null>;

export function useTables(summary: Summary): Tables {
  const [tables, setTables] = useState<Tables>(new Map());
  useEffect(() => {
    summary.results.forEach(async (result, number) => {
      const rows = await readRows(result);
      setTables((earlier) => new Map(earlier).set(number, rows));
    });
  }, [summary]);
  return tables;
}

export function Theme() {
  const [dark, setDark] = useState(() => matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const system = matchMedia("(prefers-color-scheme: dark)");
    const follow = () => document.documentElement.dataset.theme ?? setDark(system.matches);
    system.addEventListener("change", follow);
    return () => system.removeEventListener("change", follow);
  }, []);
  const change = () => {
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    setDark(!dark);
  };
  return <button onClick={change}>{dark ? "Light" : "Dark"}</button>;
}

export function titleOf(summary: Summary): string {
  if (summary.results.length === 1) return summary.results[0].title;
  const superseded = summary.results.filter((result) => result.status === "superseded").length;
  const latest = plural(summary.results.length - superseded, "result");
  return (summary.whole && summary.evaluations[0].name) || (superseded > 0 ? `${latest}, ${count(superseded)} superseded` : latest);
}

const KEYS: [string, string][] = [["/", "search"], ["j", "next"], ["k", "previous"], ["Enter", "open"], ["Esc", "back"], ["r", "raw text"]];

/** Parts of a page that differ between a server and a file. */
export interface Surroundings {
  /** Link back, before the title. */
  before?: ComponentChildren;
  /** Current events, above all views. */
  banner?: ComponentChildren;
  origin: ComponentChildren;
}

export function App({ summary, tables, around }: { summary: Summary; tables: Tables; around: Surroundings }) {
  const [place, go] = usePlace();
  const [filters, setFilters] = useState(new Map<number, Filter>());
  const order = useRef<Row[]>([]);
  const setOrder = useCallback((rows: Row[]) => { order.current = rows; }, []);
  const number = Math.min(place.result, summary.results.length - 1);
  const result = summary.results[number];
  const several = summary.results.length > 1;
  const rows = tables.get(number);
  const row = place.view === "sample"
    ? rows === null ? { n: place.n, t: place.trial - 1, i: place.trial, r: place.run, id: place.sample }
      : rows?.find((one) => one.id.toWellFormed() === place.sample && one.i === place.trial && one.r === place.run) : undefined;
  const split = summary.pages !== undefined;
  // In a report of several pages, only the first page contains the table.
  if (rows === null && place.view !== "sample") location.replace(summary.index + location.hash);
  const all = order.current.length > 0 && row && order.current.includes(row) ? order.current : rows ?? [];
  const at = row ? all.indexOf(row) : -1;
  const step = (by: number) => {
    const next = all[at + by];
    if (next) go(hashOf(next, number, split));
  };
  const filter = filters.get(number) ?? EVERYTHING;
  const setFilter = (next: Filter) => {
    setFilters((earlier) => new Map(earlier).set(number, next));
    // The address contains the filter, so that readers can send it. The browser history does not store each letter.
    const names = new URLSearchParams({ samples: "", result: String(number) });
    if (next.where) names.set("where", next.where);
    if (next.text) names.set("search", next.text);
    if (place.view === "samples") history.replaceState(null, "", `#${names}`);
  };
  useEffect(() => {
    if (place.view === "samples" && (place.where || place.search)) setFilters((earlier) => new Map(earlier).set(number, { ...(earlier.get(number) ?? EVERYTHING), where: place.where, text: place.search }));
  }, [place]);
  const close = () => {
    const names = new URLSearchParams({ samples: "", result: String(number) });
    if (filter.where) names.set("where", filter.where);
    if (filter.text) names.set("search", filter.text);
    go(`#${names}`);
  };

  useLayoutEffect(() => {
    const keys = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const typing = (event.target as HTMLElement).closest?.("input, select, textarea, [role=grid], .code") !== null;
      if (event.key === "Escape" && place.view === "sample") close();
      else if (typing) return;
      else if (event.key === "/" && place.view === "samples") { event.preventDefault(); document.getElementById("search")?.focus(); }
      else if (place.view === "sample" && ["j", "ArrowRight"].includes(event.key)) step(1);
      else if (place.view === "sample" && ["k", "ArrowLeft"].includes(event.key)) step(-1);
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  });
  useEffect(() => {
    if (place.view === "sample") document.getElementById("sample-title")?.focus({ preventScroll: true });
    if (!place.turn) scrollTo(0, 0);
  }, [place.view, place.one, number, row]);

  const tab = (view: string, name: string, href: string, current: boolean) => <a key={view} href={href} aria-current={current ? "page" : undefined}>{name}</a>;
  const overview = place.view === "summary" && (!several || !place.one);
  const link = (trial: number) => hashOf({ ...row!, i: trial }, number, split);
  return (
    <>
      <header>
        {around.before}
        <h1><Text>{titleOf(summary)}</Text></h1>
        <nav aria-label="views">
          {several && tab("start", "All results", "#", overview)}
          {tab("summary", several ? "Result" : "Summary", several ? `#result=${number}` : "#", place.view === "summary" && !(several && overview))}
          {place.view === "compare" && tab("compare", "Comparison", location.hash, true)}
          {tab("samples", "Samples", `#samples&result=${number}`, place.view === "samples" || place.view === "sample")}
        </nav>
        {several && !overview && place.view !== "compare" && (
          <label class="choice"><span class="hidden">result</span> <select value={number} onChange={(event) => go(`#${place.view === "summary" ? "" : "samples&"}result=${event.currentTarget.value}`)}>
            {summary.results.map((one, index) => <option value={index}>{one.model ? `${one.title} · ${one.model}` : one.title}</option>)}
          </select></label>
        )}
        <span class="tools"><button onClick={() => print()}>Print</button> <Theme /></span>
      </header>
      <main>
        {around.banner}
        <div class={place.view === "summary" ? "summary" : "summary only-print"}>
          <SummaryView summary={summary} tables={tables} result={overview ? null : number} />
        </div>
        {place.view === "compare" && (place.compared.every((one) => one < summary.results.length) && place.compared.length > 0
          ? <ReportComparison summary={summary} results={place.compared} /> : <Empty title="These results are not in this report." />)}
        {place.view === "samples" && (!rows
          ? result.rows?.length ? <p class="note" role="status">unpacking …</p> : <Empty title="The result does not contain samples." />
          : rows.length === 0 ? <Empty title="The result does not contain samples." />
          : <Samples key={number} rows={rows} result={result} filter={filter} setOrder={setOrder} setFilter={setFilter} open={(one) => go(hashOf(one, number, split))} />)}
        {place.view === "sample" && (row
          ? <SampleView summary={summary} result={result} row={row} close={close} step={step} turn={place.turn} link={link} place={at < 0 ? "" : `${count(at + 1)} of ${count(all.length)}${all.length !== (rows?.length ?? 0) ? " (filtered)" : ""}`} />
          : rows === undefined && result.rows?.length ? <p class="note" role="status">unpacking …</p> : <Empty title="This sample is not in the result."><p><Text>{place.sample}</Text></p></Empty>)}
      </main>
      <footer><p>{around.origin} <span class="screen">Keys: {KEYS.map(([key, name]) => <><kbd>{key}</kbd> {name} </>)}</span></p></footer>
    </>
  );
}
