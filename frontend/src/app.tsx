/** The pages of results: which of the views is shown follows from the address behind the `#`. */

import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { readRows, type Row, type Summary } from "./data";
import { EVERYTHING, Explore, type Filter } from "./explore";
import { SampleView } from "./sample";
import { SummaryView } from "./summary";
import { Text } from "./text";

interface Place { view: "summary" | "samples" | "sample"; result: number; sample: string; trial: number; run: number | undefined; n: number }

export function placeOfHash(hash: string): Place {
  const names = new URLSearchParams(hash.replace(/^#/, ""));
  const sample = names.get("sample");
  const number = (name: string) => Math.max(0, Number.parseInt(names.get(name) ?? "0", 10) || 0);
  return {
    view: sample !== null ? "sample" : names.has("samples") ? "samples" : "summary",
    result: number("result"), sample: sample ?? "", trial: Math.max(1, number("trial")), run: names.has("run") ? number("run") : undefined, n: number("n"),
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

/** The rows of each result: null where they are on another page; missing while they are unpacked. */
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
  const change = () => {
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    setDark(!dark);
  };
  return <button onClick={change} aria-pressed={dark}>{dark ? "light" : "dark"}</button>;
}

export function titleOf(summary: Summary): string {
  if (summary.results.length === 1) return summary.results[0].title;
  const superseded = summary.results.filter((result) => result.status === "superseded").length;
  const latest = `${summary.results.length - superseded} results`;
  return (summary.whole && summary.evaluations[0].name) || (superseded > 0 ? `${latest}, ${superseded} superseded` : latest);
}

const KEYS = "Keys: / search, j and k or arrows through samples, Enter opens one, Escape goes back.";

/** What is about the pages of a server that those of a file do not have. */
export interface Surroundings {
  /** Before the title: the way back. */
  before?: ComponentChildren;
  /** Above all views: what happens meanwhile. */
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
  const rows = tables.get(number);
  const row = place.view === "sample"
    ? rows === null ? { n: place.n, t: place.trial - 1, i: place.trial, r: place.run, id: place.sample }
      : rows?.find((one) => one.id.toWellFormed() === place.sample && one.i === place.trial && one.r === place.run) : undefined;
  const split = summary.pages !== undefined;
  // Of a report of many pages only the first one has the table.
  if (rows === null && place.view !== "sample") location.replace(summary.index + location.hash);
  const step = (by: number) => {
    const all = order.current.length > 0 && row && order.current.includes(row) ? order.current : rows ?? [];
    const next = all[all.indexOf(row!) + by];
    if (next) go(hashOf(next, number, split));
  };
  const close = () => go(`#samples&result=${number}`);

  useEffect(() => {
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
    if (place.view === "sample") document.getElementById("sample-title")?.focus();
    if (place.view !== "summary") scrollTo(0, 0);
  }, [place.view, row]);

  const tab = (view: string, name: string) => (
    <a href={view === "summary" ? "#" : `#samples&result=${number}`} aria-current={(view === "summary") === (place.view === "summary") ? "page" : undefined}>{name}</a>
  );
  return (
    <>
      <header>
        {around.before}
        <h1><Text>{titleOf(summary)}</Text></h1>
        <nav aria-label="views">{tab("summary", "Summary")} {tab("samples", "Samples")}</nav>
        {place.view !== "summary" && summary.results.length > 1 && (
          <label class="choice">of <select value={number} onChange={(event) => go(`#samples&result=${event.currentTarget.value}`)}>
            {summary.results.map((one, index) => <option value={index}>{one.title} · {one.model}</option>)}
          </select></label>
        )}
        <span class="tools"><button onClick={() => print()}>print</button> <Theme /></span>
      </header>
      <main>
        {around.banner}
        <div class={place.view === "summary" ? "summary" : "summary only-print"}>
          <SummaryView summary={summary} tables={tables} open={(index) => go(`#samples&result=${index}`)} />
        </div>
        {place.view === "samples" && (!rows
          ? <p class="note" role="status">{result.rows?.length ? "unpacking …" : "The result has no samples."}</p>
          : rows.length === 0 ? <p class="note">The result has no samples.</p>
          : <Explore key={number} rows={rows} filter={filters.get(number) ?? EVERYTHING} setOrder={setOrder}
              setFilter={(filter) => setFilters((earlier) => new Map(earlier).set(number, filter))} open={(one) => go(hashOf(one, number, split))} />)}
        {place.view === "sample" && (row
          ? <SampleView summary={summary} result={result} row={row} close={close} step={step} />
          : <p class="note" role="status">{rows === undefined && result.rows?.length ? "unpacking …" : <>There is no sample <Text>{place.sample}</Text> in this result.</>}</p>)}
      </main>
      <footer><p>{around.origin} <span class="screen">{KEYS}</span></p></footer>
    </>
  );
}
