/** The table of samples, of which only what is in sight is made, with filters and a breakdown by any column. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { columnName, own, rowStatus, scoreColumns, scoreNumber, scoreText, type Row } from "./data";
import { distribution, isNumeric } from "./figures";
import { Text, Wide } from "./text";

const HEIGHT = 34;
const MARGIN = 12;

interface Column {
  name: string; title: string; get: (row: Row) => string | undefined; numeric: boolean; width: string;
  /** what sorts and is averaged, if that is not the text */ key?: (row: Row) => string | undefined;
}

function columns(rows: Row[]): Column[] {
  const some = (get: Column["get"]) => rows.some((row) => get(row) !== undefined);
  const all: Column[] = [
    { name: "id", title: "sample", get: (row) => row.id, numeric: isNumeric(rows.map((row) => row.id)), width: "minmax(5rem, .6fr)" },
    { name: "run", title: "run", get: (row) => row.r?.toString(), numeric: true, width: "4rem" },
    { name: "trial", title: "trial", get: (row) => (rows.some((one) => one.t > 0) ? String(row.i) : undefined), numeric: true, width: "4rem" },
    { name: "status", title: "status", get: rowStatus, numeric: false, width: "7rem" },
    { name: "stop", title: "stop reason", get: (row) => row.z, numeric: false, width: "7rem" },
    { name: "input", title: "input", get: (row) => row.q, numeric: false, width: "minmax(9rem, 2fr)" },
    { name: "answer", title: "answer", get: (row) => row.a, numeric: false, width: "minmax(9rem, 1.6fr)" },
    { name: "truth", title: "truth", get: (row) => row.g, numeric: false, width: "minmax(6rem, 1fr)" },
    { name: "prediction", title: "prediction", get: (row) => row.p, numeric: false, width: "minmax(6rem, 1fr)" },
    ...scoreColumns(rows).map((column): Column => {
      const get = (row: Row) => scoreText(row, column), key = (row: Row) => scoreNumber(row, column);
      return { name: `score:${column}`, title: columnName(column), get, key, numeric: isNumeric(rows.map(key).filter((text): text is string => text !== undefined)), width: "minmax(6rem, .8fr)" };
    }),
    { name: "seconds", title: "seconds", get: (row) => row.w, numeric: true, width: "6rem" },
  ];
  return all.filter((column) => some(column.get));
}

/** Columns of the data set, which group and search but do not stand in the table. */
function dataColumns(rows: Row[]): Column[] {
  const names = new Set<string>();
  for (const row of rows) for (const name in row.d) names.add(name);
  return [...names].map((name) => ({ name: `data:${name}`, title: `${name} (data set)`, get: (row: Row) => own(row.d, name), numeric: false, width: "" }));
}

export function haystack(row: Row): string {
  return [row.id, row.q, row.a, row.g, row.p, ...(row.e ?? []).map(([, text]) => text), ...Object.values(row.d ?? {}),
    ...Object.values(row.s ?? {}).map((score) => (Array.isArray(score) ? score[0] : score))].filter((text) => text !== undefined).join("\n").toLowerCase();
}

export interface Filter { text: string; status: string; column: string; value: string; sort: string; descending: boolean }
export const EVERYTHING: Filter = { text: "", status: "", column: "", value: "", sort: "", descending: false };

export function selected(rows: Row[], texts: string[], filter: Filter, all: Column[]): number[] {
  const needle = filter.text.toLowerCase();
  const column = all.find((one) => one.name === filter.column);
  const numbers: number[] = [];
  for (let i = 0; i < rows.length; i++) {
    if (needle !== "" && !texts[i].includes(needle)) continue;
    if (filter.status !== "" && !matches(rows[i], filter.status)) continue;
    if (column !== undefined && filter.value !== "" && (column.get(rows[i]) ?? "") !== filter.value.slice(1)) continue;
    numbers.push(i);
  }
  const sort = all.find((one) => one.name === filter.sort);
  if (sort !== undefined) {
    const keys = rows.map(sort.key ?? sort.get);
    const order = filter.descending ? -1 : 1;
    const compare = new Intl.Collator("en", { numeric: true }).compare;
    numbers.sort((a, b) => {
      const x = keys[a], y = keys[b];
      // Rows without a value come last, whichever way.
      if (x === undefined || y === undefined) return Number(x === undefined) - Number(y === undefined) || a - b;
      return order * (sort.numeric ? Number(x) - Number(y) : compare(x, y)) || a - b;
    });
  }
  return numbers;
}

function matches(row: Row, status: string): boolean {
  if (status.startsWith("stage:")) return row.o === "failed" && (row.e?.some(([stage]) => `stage:${stage}` === status) ?? false);
  return rowStatus(row).split(":")[0] === status;
}

function distinct(rows: Row[], column: Column): string[] {
  const values = new Set<string>();
  for (const row of rows) {
    values.add(column.get(row) ?? "");
    if (values.size > 200) return [];
  }
  return [...values].sort();
}

function Breakdown({ rows, all, pick }: { rows: Row[]; all: Column[]; pick: (column: string, value: string) => void }) {
  const [by, setBy] = useState("");
  const column = all.find((one) => one.name === by);
  const scores = all.filter((one) => one.name.startsWith("score:"));
  const groups = useMemo(() => {
    if (column === undefined) return [];
    const members = new Map<string, Row[]>();
    for (const row of rows) {
      const key = column.get(row) ?? "";
      (members.get(key) ?? members.set(key, []).get(key)!).push(row);
    }
    return [...members].sort((a, b) => b[1].length - a[1].length);
  }, [rows, column]);
  return (
    <details class="breakdown"><summary>Breakdown by a column</summary>
      <label>by <select value={by} onChange={(event) => setBy(event.currentTarget.value)}>
        <option value="">…</option>{all.map((one) => <option value={one.name}>{one.title}</option>)}
      </select></label>
      {column !== undefined && (
        <Wide label="breakdown"><table>
          <caption>Trials in sight, by {column.title}: the mean of each score that is a number, and how many trials have it; how often each label is there</caption>
          <thead><tr><th scope="col">{column.title}</th><th scope="col" class="number">trials</th><th scope="col" class="number">failed</th>
            {scores.map((score) => <th scope="col" class="number"><Text>{score.title}</Text></th>)}</tr></thead>
          <tbody>{groups.slice(0, 100).map(([value, members]) => (
            <tr><th scope="row"><button class="link" onClick={() => pick(column.name, value)}><Text>{value === "" ? "(none)" : value}</Text></button></th>
              <td class="number">{members.length}</td><td class="number">{members.filter((row) => row.o === "failed").length}</td>
              {scores.map((score) => <td class="number"><Summed texts={members.map(score.key ?? score.get).filter((text): text is string => text !== undefined)} numeric={score.numeric} /></td>)}</tr>
          ))}</tbody>
        </table>{groups.length > 100 && <p class="note">{groups.length - 100} more groups</p>}</Wide>
      )}
    </details>
  );
}

function Summed({ texts, numeric }: { texts: string[]; numeric: boolean }) {
  if (texts.length === 0) return <>–</>;
  if (!numeric) return <>{distribution(texts).slice(0, 8).map(([text, count]) => <div><Text>{text.slice(0, 40)}</Text> {count}</div>)}</>;
  const mean = texts.reduce((sum, text) => sum + Number(text), 0) / texts.length;
  return <>{`${Number(mean.toPrecision(4))} (${texts.length})`}</>;
}

export function Explore({ rows, filter, setFilter, open, setOrder }: {
  rows: Row[]; filter: Filter; setFilter: (filter: Filter) => void; open: (row: Row) => void; setOrder: (order: Row[]) => void;
}) {
  const shownColumns = useMemo(() => columns(rows), [rows]);
  const all = useMemo(() => [...shownColumns, ...dataColumns(rows)], [rows, shownColumns]);
  const texts = useMemo(() => rows.map(haystack), [rows]);
  const order = useMemo(() => selected(rows, texts, filter, all), [rows, texts, filter, all]);
  useEffect(() => setOrder(order.map((index) => rows[index])), [order]);
  const stages = useMemo(() => [...new Set(rows.flatMap((row) => (row.o === "failed" ? row.e ?? [] : []).map(([stage]) => stage)))], [rows]);
  const column = all.find((one) => one.name === filter.column);
  const values = useMemo(() => (column === undefined ? [] : distinct(rows, column)), [rows, column]);
  const change = (part: Partial<Filter>) => setFilter({ ...filter, ...part });
  return (
    <div class="explore">
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <label>search <input id="search" type="search" value={filter.text} placeholder="in ids, texts, columns, errors" onInput={(event) => change({ text: event.currentTarget.value })} /></label>
        <label>status <select value={filter.status} onChange={(event) => change({ status: event.currentTarget.value })}>
          <option value="">all</option>
          {["scored", "failed", "excluded", "not scored", "not finished"].filter((status) => status === "scored" || rows.some((row) => rowStatus(row).split(":")[0] === status)).map((status) => <option value={status}>{status}</option>)}
          {stages.map((stage) => <option value={`stage:${stage}`}>failed: {stage}</option>)}
        </select></label>
        <label>column <select value={filter.column} onChange={(event) => change({ column: event.currentTarget.value, value: "" })}>
          <option value="">…</option>{all.map((one) => <option value={one.name}>{one.title}</option>)}
        </select></label>
        {column !== undefined && (values.length > 0 ? (
          <label>value <select value={filter.value} onChange={(event) => change({ value: event.currentTarget.value })}>
            <option value="">all</option>{values.map((value) => <option value={`=${value}`}>{value === "" ? "(none)" : value.slice(0, 80)}</option>)}
          </select></label>
        ) : <span class="note">too many values to choose from: search instead</span>)}
        <output>{order.length} of {rows.length} trials</output>
        {(filter.text || filter.status || filter.column || filter.sort) && <button type="button" onClick={() => setFilter(EVERYTHING)}>clear</button>}
      </form>
      <p class="note">The table has the first 300 characters of each text, and searches these.</p>
      <Breakdown rows={order.map((index) => rows[index])} all={all} pick={(name, value) => change({ column: name, value: `=${value}` })} />
      <Grid rows={rows} order={order} columns={shownColumns} filter={filter} change={change} open={open} />
    </div>
  );
}

function Grid({ rows, order, columns, filter, change, open }: {
  rows: Row[]; order: number[]; columns: Column[]; filter: Filter; change: (part: Partial<Filter>) => void; open: (row: Row) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [focus, setFocus] = useState(0);
  useEffect(() => {
    const measure = () => setHeight(box.current?.clientHeight || 600);
    measure();
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, []);
  useEffect(() => { setFocus(0); if (box.current) box.current.scrollTop = 0; }, [filter]);
  const begin = Math.max(0, Math.floor(top / HEIGHT) - MARGIN);
  const end = Math.min(order.length, Math.ceil((top + height) / HEIGHT) + MARGIN);
  const least = columns.reduce((sum, column) => sum + Number.parseFloat(column.width.replace("minmax(", "")) + 0.8, 1.2);
  const template = { gridTemplateColumns: columns.map((column) => column.width).join(" "), minWidth: `${least}rem` };
  const move = (place: number) => {
    const next = Math.max(0, Math.min(order.length - 1, place));
    setFocus(next);
    const element = box.current!;
    const lowest = (next + 2) * HEIGHT - element.clientHeight;
    if (next * HEIGHT < element.scrollTop) element.scrollTop = next * HEIGHT;
    else if (element.scrollTop < lowest) element.scrollTop = lowest;
  };
  const keys = (event: KeyboardEvent) => {
    const page = Math.floor(height / HEIGHT) - 2;
    const places: Record<string, number> = { ArrowDown: focus + 1, j: focus + 1, ArrowUp: focus - 1, k: focus - 1, PageDown: focus + page, PageUp: focus - page, Home: 0, End: order.length - 1 };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in places) { event.preventDefault(); move(places[event.key]); }
    else if (event.key === "Enter" && event.target === box.current && order.length > 0) open(rows[order[focus]]);
  };
  return (
    <div class="grid" ref={box} role="grid" tabIndex={0} aria-label="samples" aria-rowcount={order.length + 1} aria-colcount={columns.length}
      aria-activedescendant={focus >= begin && focus < end ? `row-${focus}` : undefined} onScroll={(event) => setTop(event.currentTarget.scrollTop)} onKeyDown={keys}>
      <div class="line head" role="row" aria-rowindex={1} style={template}>
        {columns.map((column) => (
          <div role="columnheader" class={column.numeric ? "number" : ""} aria-sort={filter.sort === column.name ? (filter.descending ? "descending" : "ascending") : "none"}>
            <button onClick={() => change({ sort: column.name, descending: filter.sort === column.name && !filter.descending })}>
              <Text>{column.title}</Text>{filter.sort === column.name ? (filter.descending ? " ↓" : " ↑") : ""}</button>
          </div>
        ))}
      </div>
      <div class="rows" role="rowgroup" style={{ height: `${order.length * HEIGHT}px`, minWidth: `${least}rem` }}>
        {order.slice(begin, end).map((index, offset) => {
          const row = rows[index], place = begin + offset;
          return (
            <div key={index} id={`row-${place}`} class={`line${row.o === "failed" ? " failed" : ""}${place === focus ? " focus" : ""}`} role="row" aria-rowindex={place + 2}
              aria-selected={place === focus} style={{ ...template, top: `${place * HEIGHT}px` }} onClick={() => { setFocus(place); open(row); }}>
              {columns.map((column) => <div role="gridcell" class={column.numeric ? "number" : ""}><Text>{(column.get(row) ?? "–").slice(0, 160)}</Text></div>)}
            </div>
          );
        })}
      </div>
      {order.length === 0 && <p class="note">No trial is like that.</p>}
    </div>
  );
}
