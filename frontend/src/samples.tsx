/** Virtual table of samples: search, filter language, sort, columns and keys. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { columnName, own, rowStatus, scoreColumns, scoreNumber, scoreText, searchTexts, type Result, type Row } from "./data";
import { distribution, isNumeric } from "./figures";
import { FilterError, parseFilter, type Field, type Test } from "./filter";
import { count, duration, plural, short } from "./format";
import { Empty, Text, Wide } from "./text";

const HEIGHT = 34, CARD = 132;
const MARGIN = 12;

export interface Column {
  name: string; title: string; get: (row: Row) => string | undefined; numeric: boolean; width: string;
  /** value for sorting and means, if it differs from the text */ key?: (row: Row) => string | undefined;
  /** display format */ show?: (text: string) => string; /** hidden until the reader selects it */ extra?: boolean;
}

const number = (text: string) => (isNumeric([text]) ? short(Number(text)) : text);

function columns(rows: Row[]): Column[] {
  const some = (get: Column["get"]) => rows.some((row) => get(row) !== undefined);
  const repeated = rows.some((row) => row.t > 0);
  const all: Column[] = [
    { name: "id", title: "sample", get: (row) => row.id, numeric: isNumeric(rows.map((row) => row.id)), width: "minmax(6.5rem, .7fr)" },
    { name: "run", title: "run", get: (row) => row.r?.toString(), numeric: true, width: "4rem" },
    { name: "trial", title: "trial", get: (row) => (repeated ? String(row.i) : undefined), numeric: true, width: "4rem" },
    { name: "status", title: "status", get: rowStatus, numeric: false, width: "7rem" },
    { name: "stop_reason", title: "stop reason", get: (row) => row.z, numeric: false, width: "7rem" },
    { name: "question", title: "question", get: (row) => row.q, numeric: false, width: "minmax(9rem, 2fr)" },
    { name: "answer", title: "answer", get: (row) => row.a, numeric: false, width: "minmax(9rem, 1.6fr)" },
    { name: "truth", title: "truth", get: (row) => row.g, numeric: false, width: "minmax(6rem, 1fr)" },
    { name: "prediction", title: "prediction", get: (row) => row.p, numeric: false, width: "minmax(6rem, 1fr)" },
    ...scoreColumns(rows).map((column): Column => {
      const get = (row: Row) => scoreText(row, column), key = (row: Row) => scoreNumber(row, column);
      return { name: `score:${column}`, title: columnName(column), get, key, show: number, numeric: isNumeric(rows.map(key).filter((text): text is string => text !== undefined)), width: "minmax(6rem, .8fr)" };
    }),
    { name: "seconds", title: "time", get: (row) => row.w, numeric: true, width: "6rem", show: (text) => duration(Number(text)) },
    { name: "error", title: "error", get: (row) => row.e?.[0][1], numeric: false, width: "minmax(9rem, 1.4fr)", extra: true },
  ];
  return all.filter((column) => some(column.get));
}

/** Columns of the dataset, for filters, groups and search. Readers can also show them. */
function dataColumns(rows: Row[]): Column[] {
  const names = new Set<string>();
  for (const row of rows) for (const name in row.d) names.add(name);
  return [...names].map((name) => ({ name: `data:${name}`, title: name, get: (row: Row) => own(row.d, name), numeric: isNumeric(rows.flatMap((row) => own(row.d, name) ?? [])), width: "minmax(7rem, 1fr)", extra: true }));
}

export function allColumns(rows: Row[]): Column[] {
  const fixed = columns(rows);
  return [...fixed, ...dataColumns(rows).map((column) => (fixed.some((one) => one.title === column.title) ? { ...column, title: `${column.title} (dataset)` } : column))];
}

const FIXED: Record<string, (row: Row) => Field> = {
  id: (row) => row.id, trial: (row) => row.i, run: (row) => row.r, status: (row) => rowStatus(row).split(":")[0], stop_reason: (row) => row.z, question: (row) => row.q, answer: (row) => row.a,
  truth: (row) => row.g, prediction: (row) => row.p, seconds: (row) => (row.w === undefined ? undefined : Number(row.w)), error: (row) => row.e?.map(([, text]) => text).join("\n"),
  stage: (row) => row.e?.[0]?.[0],
};

function scoreField(row: Row, column: string): Field {
  const text = scoreNumber(row, column);
  return text !== undefined && isNumeric([text]) ? Number(text) : text;
}

/** Fields of rows by their names in the filter language. */
export function fieldsOf(rows: Row[]): Map<string, (row: Row) => Field> {
  const fields = new Map<string, (row: Row) => Field>(Object.entries(FIXED));
  const scores = scoreColumns(rows);
  if (scores.length > 0) fields.set("score", (row) => scoreField(row, scores[0]));
  for (const row of rows) for (const name in row.d) if (!fields.has(name)) fields.set(name, (one) => own(one.d, name));
  for (const column of scores) {
    const [scorer, name] = column.split("\x1f");
    fields.set(`${scorer}.${name}`, (row) => scoreField(row, column));
    if (!fields.has(name)) fields.set(name, (row) => scoreField(row, column));
  }
  return fields;
}

export function haystack(row: Row): string {
  return [row.id, row.q, row.a, row.g, row.p, ...(row.e ?? []).map(([, text]) => text), ...Object.values(row.d ?? {}),
    ...Object.values(row.s ?? {}).map((score) => (Array.isArray(score) ? score[0] : score))].filter((text) => text !== undefined).join("\n").toLowerCase();
}

export interface Filter { text: string; where: string; status: string; sort: string; descending: boolean; /** selected columns */ columns: string[] | null }
export const EVERYTHING: Filter = { text: "", where: "", status: "", sort: "", descending: false, columns: null };

export function selected(rows: Row[], texts: string[], filter: Filter, all: Column[], test: Test | null, fields: Map<string, (row: Row) => Field>, inTexts: Set<number> | null): number[] {
  const needle = filter.text.toLowerCase();
  const numbers: number[] = [];
  for (let i = 0; i < rows.length; i++) {
    if (needle !== "" && !texts[i].includes(needle) && !inTexts?.has(rows[i].n)) continue;
    if (filter.status !== "" && !matches(rows[i], filter.status)) continue;
    if (test !== null && !test((name) => fields.get(name)?.(rows[i]))) continue;
    numbers.push(i);
  }
  const sort = all.find((one) => one.name === filter.sort);
  if (sort !== undefined) {
    const keys = rows.map(sort.key ?? sort.get);
    const order = filter.descending ? -1 : 1;
    const compare = new Intl.Collator("en", { numeric: true }).compare;
    numbers.sort((a, b) => {
      const x = keys[a], y = keys[b];
      // Rows without a value come last in both directions.
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

/** Column name in the syntax of the filter language. */
export function fieldName(column: Column): string {
  const name = column.name.startsWith("score:") ? column.name.slice(6).replace("\x1f", ".") : column.name.replace(/^data:/, "");
  return /^[\p{L}_][\p{L}\p{N}_.-]*$/u.test(name) && !["and", "or", "not", "in", "contains", "true", "false", "null"].includes(name) ? name : `\`${name.replaceAll("`", "")}\``;
}

function Breakdown({ rows, all, pick }: { rows: Row[]; all: Column[]; pick: (column: Column, value: string) => void }) {
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
    <details class="breakdown"><summary>Group by a column</summary>
      <label>column <select value={by} onChange={(event) => setBy(event.currentTarget.value)}>
        <option value="">…</option>{all.map((one) => <option value={one.name}>{one.title}</option>)}
      </select></label>
      {column !== undefined && (
        <Wide label="groups"><table class="stacked">
          <caption>Trials in the table by {column.title}: mean of each numeric score with its number of trials, or the number of trials with each label</caption>
          <thead><tr><th scope="col">{column.title}</th><th scope="col" class="number">trials</th><th scope="col" class="number">failed</th>
            {scores.map((score) => <th scope="col" class="number"><Text>{score.title}</Text></th>)}</tr></thead>
          <tbody>{groups.slice(0, 100).map(([value, members]) => (
            <tr><th scope="row"><button class="link" onClick={() => pick(column, value)}><Text>{value === "" ? "(none)" : value}</Text></button></th>
              <td class="number" data-label="trials">{count(members.length)}</td><td class="number" data-label="failed">{count(members.filter((row) => row.o === "failed").length)}</td>
              {scores.map((score) => <td class="number" data-label={score.title}><Summed texts={members.map(score.key ?? score.get).filter((text): text is string => text !== undefined)} numeric={score.numeric} /></td>)}</tr>
          ))}</tbody>
        </table>{groups.length > 100 && <p class="note">{plural(groups.length - 100, "more group")}: filter the table to see them.</p>}</Wide>
      )}
    </details>
  );
}

function Summed({ texts, numeric }: { texts: string[]; numeric: boolean }) {
  if (texts.length === 0) return <>–</>;
  if (!numeric) return <>{distribution(texts).slice(0, 8).map(([text, number]) => <div><Text>{text.slice(0, 40)}</Text> {count(number)}</div>)}</>;
  const mean = texts.reduce((sum, text) => sum + Number(text), 0) / texts.length;
  return <>{`${short(mean)} (${count(texts.length)})`}</>;
}

/** Samples whose full texts contain the search text. The table itself contains only the beginnings of texts. */
function useFullTexts(result: Result, text: string): { found: Set<number> | null; state: string } {
  const [found, setFound] = useState<Set<number> | null>(null);
  const [state, setState] = useState("");
  useEffect(() => {
    setFound(null);
    setState("");
    if (text.trim().length < 2) return;
    let current = true;
    const timer = setTimeout(async () => {
      const all = await searchTexts(result, text, () => current, (part) => current && setState(part < 1 ? `searching full texts: ${Math.round(part * 100)} %` : "")).catch(() => null);
      if (!current) return;
      setFound(all);
      setState(all === null ? "searched in the first 300 characters of each text" : "searched in full texts");
    }, 250);
    return () => { current = false; clearTimeout(timer); };
  }, [result, text]);
  return { found, state };
}

export function Samples({ rows, result, filter, setFilter, open, setOrder }: {
  rows: Row[]; result: Result; filter: Filter; setFilter: (filter: Filter) => void; open: (row: Row) => void; setOrder: (order: Row[]) => void;
}) {
  const all = useMemo(() => allColumns(rows), [rows]);
  const fields = useMemo(() => fieldsOf(rows), [rows]);
  const texts = useMemo(() => rows.map(haystack), [rows]);
  const { found, state } = useFullTexts(result, filter.text);
  const [test, problem] = useMemo((): [Test | null, string] => {
    if (filter.where.trim() === "") return [null, ""];
    try {
      return [parseFilter(filter.where, (name) => fields.has(name)), ""];
    } catch (error) {
      return [() => true, error instanceof FilterError ? `${error.message} (character ${error.at + 1})` : String(error)];
    }
  }, [filter.where, fields]);
  const order = useMemo(() => selected(rows, texts, filter, all, test, fields, found), [rows, texts, filter, all, test, fields, found]);
  useEffect(() => setOrder(order.map((index) => rows[index])), [order]);
  const stages = useMemo(() => [...new Set(rows.flatMap((row) => (row.o === "failed" ? row.e ?? [] : []).map(([stage]) => stage)))], [rows]);
  const shownNames = filter.columns ?? all.filter((column) => !column.extra).map((column) => column.name);
  const shownColumns = all.filter((column) => shownNames.includes(column.name));
  const change = (part: Partial<Filter>) => setFilter({ ...filter, ...part });
  const pick = (column: Column, value: string) => {
    const name = fieldName(column), key = column.name === "status" ? value.split(":")[0] : value;
    const condition = value === "" ? `${name} == null` : `${name} == ${JSON.stringify(key)}`;
    change({ where: filter.where.trim() ? `(${filter.where}) and ${condition}` : condition });
  };
  return (
    <div class="explore">
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <label>search <input id="search" type="search" value={filter.text} placeholder="in all texts" onInput={(event) => change({ text: event.currentTarget.value })} /></label>
        <label>filter <input id="where" class="where" spellcheck={false} value={filter.where} placeholder={'score < 0.5 and topic == "law"'} aria-invalid={problem !== ""} aria-describedby="where-problem"
          list="names" onInput={(event) => change({ where: event.currentTarget.value })} /></label>
        <datalist id="names">{[...fields.keys()].slice(0, 100).map((name) => <option value={name} />)}</datalist>
        <label>status <select value={filter.status} onChange={(event) => change({ status: event.currentTarget.value })}>
          <option value="">all</option>
          {["scored", "failed", "excluded", "not scored", "not finished"].filter((status) => status === "scored" || rows.some((row) => rowStatus(row).split(":")[0] === status)).map((status) => <option value={status}>{status}</option>)}
          {stages.map((stage) => <option value={`stage:${stage}`}>failed in {stage}</option>)}
        </select></label>
        <details class="columns"><summary>Columns</summary><div>{all.map((column) => (
          <label><input type="checkbox" checked={shownNames.includes(column.name)} onChange={(event) => change({ columns: event.currentTarget.checked ? [...shownNames, column.name] : shownNames.filter((name) => name !== column.name) })} /> <Text>{column.title}</Text></label>
        ))}</div></details>
        <output>{count(order.length)} of {plural(rows.length, "trial")}</output>
        {(filter.text || filter.where || filter.status || filter.sort) && <button type="button" onClick={() => setFilter({ ...EVERYTHING, columns: filter.columns })}>Clear</button>}
      </form>
      <p id="where-problem" class={problem ? "note bad" : "note"} role="status">{problem ? `Filter not applied: ${problem}` : state}</p>
      <Breakdown rows={order.map((index) => rows[index])} all={all} pick={pick} />
      <Grid rows={rows} order={order} columns={shownColumns} filter={filter} change={change} open={open} />
    </div>
  );
}

/** Whether the window is so narrow that rows are cards. */
function useNarrow(): boolean {
  const query = "(max-width: 640px)";
  const [narrow, setNarrow] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query), follow = () => setNarrow(list.matches);
    list.addEventListener("change", follow);
    return () => list.removeEventListener("change", follow);
  }, []);
  return narrow;
}

const ON_CARDS = 5;

function cell(column: Column, row: Row): string {
  const text = column.get(row);
  return text === undefined ? "–" : (column.show?.(text) ?? text).slice(0, 160);
}

function Grid({ rows, order, columns: shownColumns, filter, change, open }: {
  rows: Row[]; order: number[]; columns: Column[]; filter: Filter; change: (part: Partial<Filter>) => void; open: (row: Row) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const narrow = useNarrow();
  const size = narrow ? CARD : HEIGHT;
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [focus, setFocus] = useState(0);
  useEffect(() => {
    const measure = () => setHeight(box.current?.clientHeight || 600);
    measure();
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, []);
  useEffect(() => { setFocus(0); if (box.current) box.current.scrollTop = 0; }, [filter.text, filter.where, filter.status, filter.sort, filter.descending]);
  const begin = Math.max(0, Math.floor(top / size) - MARGIN);
  const end = Math.min(order.length, Math.ceil((top + height) / size) + MARGIN);
  const least = shownColumns.reduce((sum, column) => sum + Number.parseFloat(column.width.replace("minmax(", "")) + 0.8, 1.6);
  const template = narrow ? {} : { gridTemplateColumns: shownColumns.map((column) => column.width).join(" "), minWidth: `${least}rem` };
  const move = (place: number) => {
    const next = Math.max(0, Math.min(order.length - 1, place));
    setFocus(next);
    const element = box.current!;
    const lowest = (next + 2) * size - element.clientHeight;
    if (next * size < element.scrollTop) element.scrollTop = next * size;
    else if (element.scrollTop < lowest) element.scrollTop = lowest;
  };
  const keys = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(height / size) - 2);
    const places: Record<string, number> = { ArrowDown: focus + 1, j: focus + 1, ArrowUp: focus - 1, k: focus - 1, PageDown: focus + page, PageUp: focus - page, Home: 0, End: order.length - 1 };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in places) { event.preventDefault(); move(places[event.key]); }
    else if (event.key === "Enter" && event.target === box.current && order.length > 0) open(rows[order[focus]]);
  };
  // A card shows the name of the sample and its most important texts.
  const onCard = narrow ? [...shownColumns].sort((a, b) => rank(a) - rank(b)).slice(0, ON_CARDS) : shownColumns;
  if (order.length === 0) return <Empty title="No trial matches."><p>Change the search or the filter.</p></Empty>;
  return (
    <div class={narrow ? "grid narrow" : "grid"} ref={box} role="grid" tabIndex={0} aria-label="samples" aria-rowcount={order.length + 1} aria-colcount={onCard.length}
      aria-activedescendant={focus >= begin && focus < end ? `row-${focus}` : undefined} onScroll={(event) => setTop(event.currentTarget.scrollTop)} onKeyDown={keys}>
      <div class={narrow ? "hidden" : "line head"} role="row" aria-rowindex={1} style={template}>
        {onCard.map((column) => (
          <div role="columnheader" class={column.numeric ? "number" : ""} aria-sort={filter.sort === column.name ? (filter.descending ? "descending" : "ascending") : "none"}>
            <button onClick={() => change({ sort: column.name, descending: filter.sort === column.name && !filter.descending })}>
              <Text>{column.title}</Text>{filter.sort === column.name ? (filter.descending ? " ↓" : " ↑") : ""}</button>
          </div>
        ))}
      </div>
      <div class="rows" role="rowgroup" style={{ height: `${order.length * size}px`, minWidth: narrow ? undefined : `${least}rem` }}>
        {order.slice(begin, end).map((index, offset) => {
          const row = rows[index], place = begin + offset;
          return (
            <div key={index} id={`row-${place}`} class={`line${row.o === "failed" ? " failed" : ""}${place === focus ? " focus" : ""}`} role="row" aria-rowindex={place + 2}
              aria-selected={place === focus} style={{ ...template, top: `${place * size}px` }} onClick={() => { setFocus(place); open(row); }}>
              {onCard.map((column) => <div role="gridcell" data-label={column.title} class={column.numeric ? "number" : ""} title={column.show ? column.get(row) : undefined}><Text>{cell(column, row)}</Text></div>)}
            </div>
          );
        })}
      </div>
    </div>
  );
}

const RANKS = ["id", "status", "question", "answer", "truth"];
function rank(column: Column): number {
  if (column.name.startsWith("score:")) return 2.5;
  const place = RANKS.indexOf(column.name);
  return place < 0 ? 9 : place + (place > 2 ? 1 : 0);
}
