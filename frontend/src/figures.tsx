/** Distribution of the scores, and confusion of labels. Every bar shows its number. */

import { columnName, scoreColumns, scoreText, type LabelScores, type Row } from "./data";
import { count, plural, short } from "./format";
import { Text, Wide } from "./text";

const NUMBER = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/;
const MOST_VALUES = 12;
const BINS = 10;

export function isNumeric(texts: string[]): boolean {
  return texts.length > 0 && texts.every((text) => NUMBER.test(text));
}

/** Count of each value. Many different numbers are counted in ten equal ranges. */
export function distribution(texts: string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  const numeric = isNumeric(texts);
  if (counts.size <= MOST_VALUES || !numeric) {
    const sorted = [...counts].sort(numeric ? ([a], [b]) => Number(a) - Number(b) : (a, b) => b[1] - a[1]);
    const others = sorted.slice(MOST_VALUES).reduce((sum, [, number]) => sum + number, 0);
    return others === 0 ? sorted : [...sorted.slice(0, MOST_VALUES), [plural(sorted.length - MOST_VALUES, "more value"), others]];
  }
  const numbers = texts.map(Number);
  const least = numbers.reduce((a, b) => Math.min(a, b)), most = numbers.reduce((a, b) => Math.max(a, b));
  const bins = new Array<number>(BINS).fill(0);
  for (const number of numbers) bins[Math.min(BINS - 1, Math.floor(((number - least) / (most - least)) * BINS))]++;
  const edge = (index: number) => short(least + ((most - least) * index) / BINS);
  return bins.map((number, index) => [`${edge(index)} to ${edge(index + 1)}`, number]);
}

export function Bars({ caption, bars }: { caption: string; bars: [string, number][] }) {
  const most = Math.max(...bars.map(([, number]) => number), 1);
  return (
    <Wide><table class="bars"><caption><Text>{caption}</Text></caption>
      <tbody>{bars.map(([name, number]) => (
        <tr><th scope="row"><Text>{name === "" ? "(empty)" : NUMBER.test(name) ? short(Number(name)) : name}</Text></th><td class="number">{count(number)}</td>
          <td class="track" aria-hidden="true"><span style={{ width: `${(number / most) * 100}%` }} /></td></tr>
      ))}</tbody>
    </table></Wide>
  );
}

/** Stacked bars on one axis. Each part has its name and number as text. */
export function Stacked({ caption, rows }: { caption: string; rows: [string, [string, number][]][] }) {
  const names = [...new Set(rows.flatMap(([, parts]) => parts.map(([name]) => name)))];
  const kind = (name: string) => (name === "failed" ? "part-failed" : `part-${names.indexOf(name) % 4}`);
  const most = Math.max(...rows.map(([, parts]) => parts.reduce((sum, [, number]) => sum + number, 0)), 1);
  return (
    <Wide><table class="bars"><caption>{caption}</caption>
      <tbody>{rows.map(([name, parts]) => (
        <tr><th scope="row"><Text>{name}</Text></th>
          <td class="parts">{parts.map(([part, number]) => <span class={kind(part)}>{count(number)} {part} </span>)}</td>
          <td class="track stacks" aria-hidden="true">{parts.map(([part, number]) => <span class={kind(part)} style={{ width: `${(number / most) * 100}%` }} />)}</td></tr>
      ))}</tbody></table></Wide>
  );
}

const MOST_LABELS = 25;
const LONGEST_LABEL = 40;

type Pair = [truth: string, prediction: string];

function pairsOf(rows: Row[], get: (row: Row) => [string | undefined, string | undefined]): Pair[] {
  return rows.map(get).filter((pair): pair is Pair => pair[0] !== undefined && pair[1] !== undefined);
}

/** True labels, if they are few and short. */
function labelsOf(pairs: Pair[]): string[] | null {
  const names = new Set(pairs.map(([truth]) => truth));
  if (names.size < 2 || names.size > MOST_LABELS || [...names].some((name) => name.length > LONGEST_LABEL)) return null;
  return [...names].sort();
}

function Confusion({ title, pairs, without = 0 }: { title: string; pairs: Pair[]; without?: number }) {
  const truths = labelsOf(pairs);
  if (truths === null) return null;
  const known = new Set(truths);
  const counts = new Map<string, number>();
  let others = false;
  for (const [truth, prediction] of pairs) {
    const other = !known.has(prediction);
    others ||= other;
    const cell = JSON.stringify([truth, other ? null : prediction]);
    counts.set(cell, (counts.get(cell) ?? 0) + 1);
  }
  const predictions: (string | null)[] = others ? [...truths, null] : truths;
  return (
    <Wide label="confusion matrix"><table class="confusion"><caption><Text>{title}</Text>: truth (rows) and prediction (columns) of {plural(pairs.length, "trial")}{without ? `, ${count(without)} more without a label` : ""}</caption>
      <thead><tr><td />{predictions.map((name) => <th scope="col" class="number">{name === null ? <i>other</i> : <Text>{name}</Text>}</th>)}</tr></thead>
      <tbody>{truths.map((truth) => (
        <tr><th scope="row"><Text>{truth}</Text></th>{predictions.map((name) => {
          const number = counts.get(JSON.stringify([truth, name])) ?? 0;
          return <td class={`number${truth === name ? " same" : number ? " differs" : ""}`}>{count(number)}</td>;
        })}</tr>
      ))}</tbody>
    </table></Wide>
  );
}

function Confusions({ rows, labels }: { rows: Row[]; labels: LabelScores[] }) {
  if (labels.length > 0)
    return <>{labels.map(({ scorer, truth, prediction }) => {
      const column = (name: string) => `${scorer}\x1f${name}`;
      const pairs = pairsOf(rows, (row) => [scoreText(row, column(truth)), scoreText(row, column(prediction))]);
      return <Confusion title={scorer} pairs={pairs} without={rows.length - pairs.length} />;
    })}</>;
  // Without metrics over labels, few different truths are treated as labels.
  const pairs = pairsOf(rows, (row) => [row.g, row.p]);
  return new Set(pairs.map(([truth]) => truth)).size > pairs.length / 2 ? null : <Confusion title="Labels" pairs={pairs} />;
}

export function Figures({ rows, labels }: { rows: Row[]; labels: LabelScores[] }) {
  return (
    <div class="figures">
      {scoreColumns(rows).map((column) => {
        const texts = rows.map((row) => scoreText(row, column)).filter((text): text is string => text !== undefined);
        const without = rows.length - texts.length;
        const bars: [string, number][] = distribution(texts);
        return <Bars caption={`Trials by ${columnName(column)}`} bars={without ? [...bars, ["without a value", without]] : bars} />;
      })}
      <Confusions rows={rows} labels={labels} />
    </div>
  );
}
