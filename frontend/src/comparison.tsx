/** Two results side by side: metrics with paired intervals, differences between the runs, and every pair of samples. */

import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { hashOf } from "./app";
import { readJson, readRows, readSample, rowStatus, scoreColumns, scoreText, columnName, type ReadBlock, type Result, type Row, type Summary } from "./data";
import { Diff } from "./diff";
import { FilterError, parseFilter, type Field, type Test } from "./filter";
import { change, count, plural, short, type Scale } from "./format";
import { list, member, Num, shown, type Value } from "./json";
import { IntervalPlot } from "./plots";
import { answersOf } from "./sample";
import { fieldsOf } from "./samples";
import { BASE, readEntry } from "./server";
import { CopyButton, Empty, Fold, LongText, Status, Text, Wide } from "./text";
import { Change, Count, Short, Value as Number_ } from "./value";

const numberOf = (value: Value | undefined): number | null => (value instanceof Num ? value.value : null);

function probability(value: Value | undefined): string {
  const number = numberOf(value);
  return number === null ? "–" : number < 0.0001 ? "< 0.0001" : number.toFixed(4);
}

function ends(value: Value): [number, number] | null {
  const [low, high] = list(member(value, "interval"));
  return low instanceof Num && high instanceof Num ? [low.value, high.value] : null;
}

function scaleOf(metric: Value): Scale | null {
  const [low, high] = list(member(metric, "scale")).map(numberOf);
  return low === null || high === null || low === undefined || high === undefined ? null : [low, high];
}

function Interval({ value, scale }: { value: Value; scale: Scale | null }) {
  const both = ends(value);
  if (both === null) return <>–</>;
  const signs = both.map((end) => change(end, scale).replace(/\u00a0pp$/, ""));
  return <Short full={both.join(" to ")}>{`${signs[0]} to ${signs[1]}${scale && scale[0] === 0 && scale[1] === 1 ? "\u00a0pp" : ""}`}</Short>;
}

/** Address of a result: a page of the server, or a view of this page. */
function homeOf(side: Value | undefined): string {
  const entry = member(side, "entry"), place = `#result=${shown(member(side, "position"))}`;
  return entry === undefined ? place : `${BASE}r/${shown(entry)}${place}`;
}

function Sides({ content }: { content: Value }) {
  return (
    <div class="cards">{["base", "new"].map((label) => {
      const side = member(content, label);
      return (
        <section class="card"><h3>{label}</h3>
          <p><a href={homeOf(side)}><b><Text>{shown(member(side, "model") ?? "") || shown(member(side, "name"))}</Text></b></a></p>
          <p><Text>{shown(member(side, "title") ?? "")}</Text></p><p><small><Text>{shown(member(side, "name"))}</Text></small></p>
          {member(side, "run") === true && <p class="note warn">The run has not ended. Only samples that are in its log are compared.</p>}
        </section>
      );
    })}</div>
  );
}

function Differs({ content }: { content: Value }) {
  const differs = list(member(content, "differs"));
  if (differs.length === 0) return <p class="note">Task, prompt, scorers, configuration, model, engine and version are the same.</p>;
  return (
    <details class="section" open={differs.length < 9}><summary>{plural(differs.length, "difference")} between the runs</summary>
      <Wide label="differences between the runs"><table class="stacked"><thead><tr><th scope="col">field</th><th scope="col">about</th><th scope="col">base</th><th scope="col">new</th></tr></thead>
        <tbody>{differs.map((one) => (
          <tr><th scope="row"><Text>{shown(member(one, "place"))}</Text></th>{["kind", "base", "new"].map((name) => <td data-label={name === "kind" ? "about" : name}><LongText text={shown(member(one, name))} /></td>)}</tr>
        ))}</tbody></table></Wide></details>
  );
}

/** Metrics of one or more comparisons on one plot. */
export function Numbers({ metrics: all }: { metrics: [name: string, metric: Value][] }) {
  const metrics = all.map(([, metric]) => metric), named = new Set(all.map(([name]) => name)).size > 1;
  if (metrics.length === 0) return <Empty title="The results do not contain metrics to compare." />;
  const reach = (scale: Scale | null) => {
    const same = metrics.filter((metric) => JSON.stringify(scaleOf(metric)) === JSON.stringify(scale));
    return Math.max(1e-12, ...same.flatMap((metric) => [...(ends(metric) ?? []), numberOf(member(metric, "difference")) ?? 0].map(Math.abs))) * 1.05;
  };
  return (
    <Wide label="numbers"><table class="metrics stacked"><caption>Metrics</caption>
      <thead><tr><th scope="col">metric</th><th scope="col" class="number">base</th><th scope="col" class="number">new</th><th scope="col" class="number">difference</th><th scope="col">95 % interval</th><th scope="col">around no difference</th>
        {["p", "p (Holm)", "effect", "pairs"].map((name) => <th scope="col" class="number">{name}</th>)}</tr></thead>
      <tbody>{all.map(([name, metric]) => {
        const scale = scaleOf(metric), both = ends(metric), difference = numberOf(member(metric, "difference"));
        const reason = member(metric, "reason"), test = member(metric, "test"), unpaired = numberOf(member(metric, "unpaired")), limit = reach(scale);
        const value = (name: string) => { const number = member(metric, name); return number instanceof Num ? <Number_ text={number.text} scale={scale} /> : "–"; };
        return (
          <tr><th scope="row">{named && <div><b><Text>{name}</Text></b></div>}<Text>{shown(member(metric, "label"))}</Text> <small><Text>{shown(member(metric, "scorer") ?? "")}</Text></small>
              {typeof reason === "string" && <div class="note"><Text>{reason}</Text></div>}
              {typeof test === "string" && <div class="note"><Text>{test}</Text></div>}
              {!!unpaired && <div class="note">{plural(unpaired, "sample")} left out: in this metric of only one result</div>}</th>
            <td class="number" data-label="base">{value("base")}</td><td class="number" data-label="new">{value("new")}</td>
            <td class="number value" data-label="difference">{difference === null ? "–" : <Change value={difference} scale={scale} />}</td><td class="slim nowrap" data-label="95 % interval"><Interval value={metric} scale={scale} /></td>
            <td class="axed" data-label="plot">{difference !== null && <IntervalPlot axis={{ low: -limit, high: limit }} zero={0} value={difference} low={both?.[0]} high={both?.[1]} />}</td>
            <td class="number" data-label="p">{probability(member(metric, "p_value"))}</td><td class="number" data-label="p (Holm)">{probability(member(metric, "p_value_holm"))}</td>
            <td class="number" data-label="effect"><div>{numberOf(member(metric, "effect")) === null ? "–" : short(numberOf(member(metric, "effect"))!)}{typeof member(metric, "effect_name") === "string" && <div><small>{shown(member(metric, "effect_name"))}</small></div>}</div></td><td class="number" data-label="pairs"><Count value={numberOf(member(metric, "pairs"))} /></td></tr>
        );
      })}</tbody></table>
      <p class="note">Difference: new minus base, on samples that both results have. The dashed line marks a difference of 0; bars of one scale share one axis.</p></Wide>
  );
}

interface Side { result: Result; rows: Row[]; /** set if the samples are not on this page */ read?: ReadBlock; link: (row: Row) => string }
/** Results of this page; `null` on a server, where each result has its own page. */
export type Own = Summary | null;
interface Pair { base: Row; new: Row; place: number }
type Verdict = "right → wrong" | "wrong → right" | "both wrong" | "both right";

/** The first trial of each sample, by the position of the sample in the task. */
function firstTrials(rows: Row[]): Row[] {
  return rows.filter((row) => row.t === 0 && row.r === undefined);
}

async function sideOf(side: Value | undefined, own: Own): Promise<Side> {
  const position = Number(shown(member(side, "position")));
  if (own) return { result: own.results[position], rows: (await readRows(own.results[position])) ?? [], link: (row) => hashOf(row, position, own.pages !== undefined) };
  const entry = shown(member(side, "entry")), { summary, read } = (await readEntry(entry, undefined))!;
  return { result: summary.results[position], rows: (await readRows(summary.results[position], read)) ?? [], read, link: (row) => `${BASE}r/${entry}${hashOf(row, position)}` };
}

function verdicts(metric: Value | undefined): Map<number, Verdict> {
  const found = new Map<number, Verdict>();
  const flags = shown(member(metric, "verdicts") ?? "");
  const names: Record<string, Verdict> = { l: "right → wrong", g: "wrong → right", w: "both wrong", r: "both right" };
  [...flags].forEach((flag, place) => { if (Object.hasOwn(names, flag)) found.set(place, names[flag]); });
  return found;
}

const PAGE = 100;

function Pairs({ content, own, metrics, open, setOpen }: { content: Value; own: Own; metrics: Value[]; open: number | null; setOpen: (place: number | null) => void }) {
  const [sides, setSides] = useState<[Side, Side] | null | string>(null);
  const judged = metrics.filter((metric) => typeof member(metric, "verdicts") === "string");
  const [by, setBy] = useState(0);
  const [only, setOnly] = useState<string>(judged.length > 0 ? "changed" : "");
  const [search, setSearch] = useState(""), [where, setWhere] = useState(""), [most, setMost] = useState(PAGE);
  const refs = JSON.stringify([member(content, "base"), member(content, "new")]);
  useEffect(() => {
    let current = true;
    Promise.all([sideOf(member(content, "base"), own), sideOf(member(content, "new"), own)]).then((both) => current && setSides(both), (error) => current && setSides(String(error.message ?? error)));
    return () => { current = false; };
  }, [refs]);
  const pairs = useMemo((): Pair[] => {
    if (sides === null || typeof sides === "string") return [];
    const [base, other] = sides.map((side) => firstTrials(side.rows));
    return list(member(content, "pairing")).flatMap((pair, place) => {
      const [one, two] = list(pair).map((value) => Number(shown(value)));
      return base[one] && other[two] ? [{ base: base[one], new: other[two], place }] : [];
    });
  }, [sides, content]);
  const found = useMemo(() => verdicts(judged[by]), [content, by]);
  const fields = useMemo(() => (sides === null || typeof sides === "string" ? null : sides.map((side) => fieldsOf(side.rows))), [sides]);
  const [test, problem] = useMemo((): [Test | null, string] => {
    if (!where.trim() || !fields) return [null, ""];
    const known = (name: string) => fields[0].has(name) || fields[1].has(name) || /^(base|new)\./.test(name) && fields[name.startsWith("base.") ? 0 : 1].has(name.replace(/^(base|new)\./, ""));
    try {
      return [parseFilter(where, known), ""];
    } catch (error) {
      return [null, error instanceof FilterError ? `${error.message} (character ${error.at + 1})` : String(error)];
    }
  }, [where, fields]);
  if (sides === null) return <p class="note" role="status">reading the samples …</p>;
  if (typeof sides === "string") return <p class="error"><Text>{sides}</Text></p>;
  const field = (pair: Pair) => (name: string): Field => {
    const side = /^(base|new)\./.exec(name)?.[1], plainName = side ? name.slice(side.length + 1) : name;
    return side === "base" ? fields![0].get(plainName)?.(pair.base) : fields![1].get(plainName)?.(pair.new) ?? (side ? undefined : fields![0].get(plainName)?.(pair.base));
  };
  const needle = search.toLowerCase();
  const chosen = pairs.filter((pair) => {
    const verdict = found.get(pair.place);
    if (only === "changed" ? verdict !== "right → wrong" && verdict !== "wrong → right" : only !== "" && verdict !== only) return false;
    if (needle && ![pair.base.id, pair.base.q, pair.base.a, pair.base.g, pair.new.a, pair.new.p, pair.base.p, pair.new.id].some((text) => text?.toLowerCase().includes(needle))) return false;
    return test === null || test(field(pair));
  });
  if (open !== null && pairs.some((pair) => pair.place === open))
    return <PairView pair={pairs.find((pair) => pair.place === open)!} sides={sides} verdict={found.get(open)} close={() => setOpen(null)} step={(by_) => { const at = chosen.findIndex((pair) => pair.place === open); const next = chosen[at + by_]; if (next) setOpen(next.place); }} />;
  const columns = [...new Set(sides.flatMap((side) => scoreColumns(side.rows)))];
  const tally = (name: Verdict) => [...found.values()].filter((verdict) => verdict === name).length;
  return (
    <section class="explore"><h3>Samples side by side</h3>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        {judged.length > 1 && <label>verdict by <select value={by} onChange={(event) => setBy(Number(event.currentTarget.value))}>{judged.map((metric, place) => <option value={place}>{shown(member(metric, "label"))}</option>)}</select></label>}
        {judged.length > 0 && <label>verdict <select value={only} onChange={(event) => { setOnly(event.currentTarget.value); setMost(PAGE); }}>
          <option value="">all samples</option><option value="changed">changed ({count(tally("right → wrong") + tally("wrong → right"))})</option>
          {(["right → wrong", "wrong → right", "both wrong", "both right"] as const).map((name) => <option value={name}>{name} ({count(tally(name))})</option>)}
        </select></label>}
        <label>search <input type="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} /></label>
        <label>filter <input class="where" spellcheck={false} value={where} placeholder={'new.score < 0.5 and topic == "law"'} aria-invalid={problem !== ""} onInput={(event) => setWhere(event.currentTarget.value)} /></label>
        <output>{count(chosen.length)} of {plural(pairs.length, "pair")}</output>
      </form>
      {problem && <p class="note bad">Filter not applied: {problem}</p>}
      {chosen.length === 0 ? <Empty title="No pair of samples matches." /> : (
        <Wide label="samples side by side"><table class="listed stacked pairs-of-samples">
          <thead><tr><th scope="col">sample</th>{judged.length > 0 && <th scope="col">verdict</th>}<th scope="col">question</th><th scope="col">truth</th><th scope="col">base answer</th><th scope="col">new answer</th><th scope="col">scores</th></tr></thead>
          <tbody>{chosen.slice(0, most).map((pair) => (
            <tr key={pair.place}>
              <th scope="row"><button class="link" onClick={() => setOpen(pair.place)}>sample <Text>{pair.base.id}</Text></button>{pair.new.id !== pair.base.id && <small> → <Text>{pair.new.id}</Text></small>}</th>
              {judged.length > 0 && <td class="slim" data-label="verdict"><VerdictMark verdict={found.get(pair.place)} /></td>}
              <td data-label="question"><LongText text={pair.base.q ?? ""} /></td><td data-label="truth"><LongText text={pair.base.g ?? ""} /></td>
              <td data-label="base answer"><Given row={pair.base} /></td><td data-label="new answer"><Given row={pair.new} /></td>
              <td class="slim" data-label="scores"><div>{columns.map((column) => <div class="nowrap"><small><Text>{columnName(column).slice(0, 60)}</Text></small> <Scored text={scoreText(pair.base, column)} /> → <Scored text={scoreText(pair.new, column)} /></div>)}</div></td></tr>
          ))}</tbody></table></Wide>
      )}
      {chosen.length > most && <p><button onClick={() => setMost(most + 10 * PAGE)}>Show more ({count(chosen.length - most)} left)</button></p>}
      <Groups pairs={chosen} sides={sides} columns={columns} />
    </section>
  );
}

function Given({ row }: { row: Row }) {
  return row.o === "failed" ? <Status status="failed">{rowStatus(row)}</Status> : row.a === undefined && row.p === undefined ? <small>no answer</small> : <LongText text={row.p ?? row.a ?? ""} />;
}

function Scored({ text }: { text: string | undefined }) {
  return text === undefined ? <>–</> : <b><Number_ text={text} /></b>;
}

function VerdictMark({ verdict }: { verdict: Verdict | undefined }) {
  if (verdict === undefined) return <small>not scored</small>;
  const kind = verdict === "wrong → right" ? "good" : verdict === "right → wrong" ? "bad" : "";
  return <span class={`status ${kind}`}>{verdict}</span>;
}

/** Means of both results for each value of a column of the dataset, on the pairs that are shown. */
function Groups({ pairs, sides, columns }: { pairs: Pair[]; sides: [Side, Side]; columns: string[] }) {
  const names = useMemo(() => [...new Set(sides[0].rows.flatMap((row) => Object.keys(row.d ?? {})))], [sides]);
  const [name, setName] = useState("");
  const column = columns[0];
  const groups = useMemo(() => {
    const members = new Map<string, Pair[]>();
    for (const pair of name ? pairs : []) {
      const key = pair.base.d && Object.hasOwn(pair.base.d, name) ? pair.base.d[name] : "";
      members.set(key, [...(members.get(key) ?? []), pair]);
    }
    return [...members].sort((a, b) => b[1].length - a[1].length);
  }, [name, pairs]);
  if (column === undefined || names.length === 0) return null;
  const mean = (rows: Row[]) => {
    const numbers = rows.flatMap((row) => { const text = scoreText(row, column); return text !== undefined && Number.isFinite(Number(text)) ? [Number(text)] : []; });
    return numbers.length === 0 ? "–" : `${short(numbers.reduce((a, b) => a + b, 0) / numbers.length)} (${count(numbers.length)})`;
  };
  return (
    <details class="breakdown"><summary>Group by a column</summary>
      <label>column <select value={name} onChange={(event) => setName(event.currentTarget.value)}><option value="">…</option>{names.map((one) => <option value={one}>{one}</option>)}</select></label>
      {name && <Wide label="groups"><table class="stacked"><caption>Mean of <Text>{columnName(column)}</Text> with its number of samples, in the pairs of the table</caption>
        <thead><tr><th scope="col"><Text>{name}</Text></th><th scope="col" class="number">pairs</th><th scope="col" class="number">base</th><th scope="col" class="number">new</th></tr></thead>
        <tbody>{groups.slice(0, 200).map(([value, members]) => <tr><th scope="row"><Text>{value || "(none)"}</Text></th><td class="number" data-label="pairs">{count(members.length)}</td>
          <td class="number" data-label="base">{mean(members.map((pair) => pair.base))}</td><td class="number" data-label="new">{mean(members.map((pair) => pair.new))}</td></tr>)}</tbody></table></Wide>}
    </details>
  );
}

function useSample(side: Side, row: Row): Value | null | undefined {
  const [value, setValue] = useState<Value | null>();
  useEffect(() => {
    let current = true;
    setValue(undefined);
    readSample(side.result, row.n, side.read).catch(() => null).then((sample) => {
      const trials = list(member(sample ?? null, "trials"));
      if (current) setValue(trials[row.t] ?? sample);
    });
    return () => { current = false; };
  }, [side, row]);
  return value;
}

/** Texts of a row if its sample is on another page. */
const cutTexts = (row: Row) => ({ question: row.q, truth: row.g, given: row.p, answer: row.a ?? "" });

/** One pair: the full answers with their differences, and links to both samples. */
function PairView({ pair, sides, verdict, close, step }: { pair: Pair; sides: [Side, Side]; verdict: Verdict | undefined; close: () => void; step: (by: number) => void }) {
  const base = useSample(sides[0], pair.base), other = useSample(sides[1], pair.new);
  // Before painting, so that a key pressed immediately starts from this pair.
  useLayoutEffect(() => {
    const keys = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || (event.target as HTMLElement).closest?.("input, select")) return;
      if (event.key === "Escape") close();
      else if (event.key === "j" || event.key === "ArrowRight") step(1);
      else if (event.key === "k" || event.key === "ArrowLeft") step(-1);
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  });
  const columns = [...new Set([...scoreColumns([pair.base]), ...scoreColumns([pair.new])])];
  const texts = base === undefined || other === undefined ? null : [base ? answersOf(base) : cutTexts(pair.base), other ? answersOf(other) : cutTexts(pair.new)];
  return (
    <section class="sample">
      <nav class="bar" aria-label="pairs"><button onClick={close}>← All pairs</button><button onClick={() => step(-1)}>Previous</button><button onClick={() => step(1)}>Next</button>
        <span class="end"><CopyButton text={() => `base: ${texts?.[0].answer ?? ""}\nnew: ${texts?.[1].answer ?? ""}`}>Copy answers</CopyButton></span></nav>
      <h2 tabIndex={-1} id="sample-title">Sample <Text>{pair.base.id}</Text> <VerdictMark verdict={verdict} /></h2>
      {texts === null ? <p class="note" role="status">reading …</p> : (
        <>
          <div class="top">
            <section tabIndex={0} aria-label="question"><h3>Question</h3><LongText text={shown(texts[0].question ?? pair.base.q ?? "") === "" ? "–" : pair.base.q ?? ""} /></section>
            <section tabIndex={0} aria-label="expected answer"><h3>Expected</h3>{texts[0].truth === undefined ? <p class="note">not in the result</p> : <LongText text={texts[0].truth} />}</section>
            <section tabIndex={0} aria-label="scores"><h3>Scores</h3>{columns.map((column) => <p><small><Text>{columnName(column)}</Text></small> <Scored text={scoreText(pair.base, column)} /> → <Scored text={scoreText(pair.new, column)} /></p>)}</section>
          </div>
          <h3>Answers</h3>
          {!(base && other) && <p class="note">The samples are on other pages of this report. Only the first 300 characters of each text are shown.</p>}
          <Diff one={texts[0].answer || texts[0].given || ""} two={texts[1].answer || texts[1].given || ""} names={["base", "new"]} />
          {(texts[0].given ?? "") !== (texts[0].answer ?? "") && (texts[0].given !== undefined || texts[1].given !== undefined) && <Fold title="Extracted answers"><Diff one={texts[0].given ?? ""} two={texts[1].given ?? ""} names={["base", "new"]} /></Fold>}
          <p><a class="button" href={sides[0].link(pair.base)}>Open the sample in base</a> <a class="button" href={sides[1].link(pair.new)}>Open the sample in new</a></p>
        </>
      )}
    </section>
  );
}

function Summary({ content, metrics }: { content: Value; metrics: Value[] }) {
  const lost = list(member(content, "pairs", "lost")), paired = numberOf(member(content, "pairs", "paired")) ?? 0, renumbered = numberOf(member(content, "pairs", "renumbered")) ?? 0;
  const usage = Object.entries((member(content, "usage") as { [key: string]: Value } | null | undefined) ?? {});
  return (
    <>
      <p><b>{plural(paired, "sample is", "samples are")} in both</b>{renumbered > 0 && `, ${count(renumbered)} of them paired by their rows (other ids)`}.
        {lost.map((one) => <div class="note"><Text>{`${shown(member(one, "count"))} ${shown(member(one, "reason"))}: ${list(member(one, "examples")).map(shown).join(", ")}`}</Text></div>)}</p>
      {metrics.map((metric) => {
        const flips = member(metric, "flips"), agreement = numberOf(member(flips, "agreement")), kappa = numberOf(member(flips, "kappa"));
        return flips !== null && flips !== undefined && <p class="note"><Text>{shown(member(metric, "label"))}</Text>: {shown(member(flips, "right_to_wrong"))} right → wrong, {shown(member(flips, "wrong_to_right"))} wrong → right; the same verdict in {agreement === null ? "–" : `${short(agreement * 100)} %`}{kappa !== null && ` (Cohen's kappa ${short(kappa)})`}.</p>;
      })}
      {usage.filter(([, one]) => numberOf(member(one, "difference"))).map(([name, one]) => <p class="note">{name === "total_tokens" ? "Tokens" : "Seconds"} per sample: {change(numberOf(member(one, "difference")) ?? 0)}{ends(one) && ` (${ends(one)!.map((end) => change(end)).join(" to ")})`}.</p>)}
    </>
  );
}

/** `numbers`: whether the metrics are shown here, and not in a table of several comparisons. */
export function ComparisonView({ content, own = null, numbers }: { content: Value; own?: Own; numbers: boolean }) {
  const [open, setOpen] = useState<number | null>(null);
  const metrics = list(member(content, "metrics"));
  return (
    <>
      <div class={open === null ? "" : "only-print"}>
        <Sides content={content} />
        {numbers && <Numbers metrics={metrics.map((metric) => ["", metric])} />}
        <Summary content={content} metrics={metrics} />
        <Differs content={content} />
      </div>
      <Pairs content={content} own={own} metrics={metrics} open={open} setOpen={setOpen} />
    </>
  );
}

const nameOf = (content: Value) => shown(member(content, "new", "model") ?? "") || shown(member(content, "new", "name") ?? "");

/** A base and one or more other results: all metrics on one plot, then the samples of one pair. */
export function Comparisons({ contents, own = null }: { contents: Value[]; own?: Own }) {
  const [number, setNumber] = useState(0);
  const names = contents.map(nameOf), several = contents.length > 1;
  return (
    <>
      {several && <Numbers metrics={contents.flatMap((content, place) => list(member(content, "metrics")).map((metric): [string, Value] => [names[place], metric]))} />}
      {several && <nav class="row" aria-label="comparisons">{names.map((name, place) => <button aria-pressed={place === number} onClick={() => setNumber(place)}>Base and <Text>{name}</Text></button>)}</nav>}
      <ComparisonView key={number} content={contents[number]} own={own} numbers={!several} />
    </>
  );
}

/** The comparison of some results of a report, by position. */
export function ReportComparison({ summary, results }: { summary: Summary; results: number[] }) {
  const [contents, setContents] = useState<Value[] | null>(null);
  const found = results.slice(1).map((other) => summary.comparisons?.find((one) => one.base === results[0] && one.new === other));
  const blocks = found.map((one) => one?.block);
  useEffect(() => {
    let current = true;
    setContents(null);
    if (!blocks.includes(undefined)) Promise.all(blocks.map((name) => readJson(name!))).then((all) => current && setContents(all));
    return () => { current = false; };
  }, [blocks.join()]);
  if (blocks.length === 0 || blocks.includes(undefined))
    return <Empty title="These results are not compared in this report."><p>A report compares results of the same task. Compare others with <code>aigo-bridge compare BASE NEW</code>.</p></Empty>;
  if (contents === null) return <p class="note" role="status">reading …</p>;
  return <><h2>Comparison: <Text>{summary.results[results[0]].title}</Text></h2><Comparisons key={blocks.join()} contents={contents} own={summary} /></>;
}
