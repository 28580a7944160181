/** Data of the page, written by `pages.py` and `summary.py`. */

import { parse, type Value } from "./json";

export interface MetricValue {
  name: string; /** unique in the result */ label: string; text: string; /** standard error as the tool reports it */ reported_error?: string; /** number that the evaluation reports */ scored?: number | null;
  interval?: [string, string]; error?: string; method?: string; no_interval?: string;
  samples?: {
    scored: number; failed: number; excluded: number; unfinished: number; no_aggregate: number; no_value: number;
    unscored: number; trials: number; missing_trials: number;
  };
  bounds?: [string, string];
  /** declared lowest and highest value */ scale?: [number, number] | null;
}
/** A metric for the samples with each value of a column of the dataset. */
export interface Breakdown { column: string; label: string; parts: { name: string; samples: number; value: MetricValue }[] }
export interface Verification { state: string; reason?: string; /** claim, verdict, details */ levels: [string, string, string][] }
export interface Metric {
  scorer: string; scorer_name?: string | null; purpose?: string | null; key: string; type?: string | null;
  reason?: string | null; values: MetricValue[];
  /** counts of the scorer, if the samples in a metric are unknown */
  counts?: { scored: number; excluded: number; without: number };
}
/** Names of the scores with the true and the predicted label. */
export interface LabelScores { scorer: string; truth: string; prediction: string }
export interface Failure { type: string; message: string; hint: string | null; stage: string | null }
export interface Times { n: number; min: string; median: string; p95: string; max: string; total: string }
export interface ModelUse {
  model: string; calls: number; failed: number; prompt_tokens: number; completion_tokens: number; unknown: number;
}
export interface Result {
  name: string; file: string | null; title: string; task: string; model: string; status: string;
  problems: string[]; rows?: string[]; parts?: [number, string][];
  facts?: [string, string][]; description?: string; configuration?: [string, Value][]; metrics?: Metric[]; runs?: Metric[][];
  counts?: {
    samples: number; scored: number; unscored: number; failed: number; excluded: number; unfinished: number;
    trials: number; failed_trials: number; unfinished_trials: number; missing: number | null;
    stated: { failed: number; total: number } | null;
  };
  /** answers that a filter or a limit stopped */
  stopped?: string[];
  /** whether the run did not finish, so that its metrics are not final */
  unfinished?: boolean;
  /** stage, samples, types of errors */
  stages?: [string, number, [string, number][]][]; rules?: [string, number][]; labels?: LabelScores[]; errors?: Failure[]; models?: ModelUse[];
  dataset?: string | null; engine?: string | null; started?: number | null; seconds?: number | null;
  breakdowns?: Breakdown[]; verification?: Verification;
  /** text of a graded score, in lowercase → its number */
  grades?: Record<string, number> | null;
  usage?: { num_samples: number; num_prompt_tokens: number | null; num_completion_tokens: number | null } | null;
  times?: Record<string, Times | null>;
}
export interface Rule { policy: string; rule: string; name: string; passed: boolean; reason: string }
/** Two results of a page that are compared, by position, and the block of the comparison. */
export interface Compared { base: number; new: number; block: string }
export interface Evaluation { name: string; key: string; file: string; status: string; policies: Rule[] }
export interface Summary {
  version: string; /** whether all results are of one evaluation */ whole: boolean; evaluations: Evaluation[]; results: Result[]; comparisons?: Compared[]; pages?: Record<string, string>; index?: string;
  /** for a run in progress or a killed run: whether its process exists, number of trials that are not in its log yet */
  run?: { alive: boolean; live: number; done?: number | null; total?: number | null } | null;
}
/** A trial in the table; `rows.py` explains the letters. */
export interface Row {
  n: number; t: number; i: number; r?: number; id: string; q?: string; a?: string; g?: string; p?: string;
  /** scores: a number, a list with a text, or a list with a grade and its number */ s?: Record<string, string | [string] | [string, string]>;
  d?: Record<string, string>; e?: [string, string][]; x?: string[]; w?: string;
  /** state of the trial, unless it was scored: failed, unscored, not finished */
  o?: string;
  /** stop reason of the last answer */
  z?: string;
}

async function unpack(text: string): Promise<string> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

const parsed = new Promise<void>((resolve) => {
  if (document.readyState !== "loading") resolve();
  else document.addEventListener("DOMContentLoaded", () => resolve());
});

export type ReadBlock = (name: string) => Promise<string | null>;

/** Read blocks from a server. */
export function readFrom(source: ReadBlock) {
  block = source;
  latest = null;
}

let block: ReadBlock = blockOfPage;

/** Text of a block; `null` if it is on another page. */
async function blockOfPage(name: string): Promise<string | null> {
  let element = document.getElementById(name);
  if (element === null) {
    await parsed; // the page starts before its data is read
    element = document.getElementById(name);
  }
  return element === null ? null : unpack(element.textContent ?? "");
}

export async function readSummary(): Promise<Summary> {
  return JSON.parse((await block("summary"))!);
}

/** A block with JSON of any form. */
export async function readJson(name: string): Promise<Value> {
  return parse((await block(name))!);
}

export async function readRows(result: Result, read: ReadBlock = block): Promise<Row[] | null> {
  const blocks = await Promise.all((result.rows ?? []).map(read));
  if (blocks.includes(null)) return null;
  const rows = blocks.flatMap((text) => JSON.parse(text!) as Row[]);
  if (result.grades) for (const row of rows) for (const score of Object.values(row.s ?? {})) addGrade(score, result.grades);
  return rows;
}

function addGrade(score: string | string[], grades: Record<string, number>) {
  if (!Array.isArray(score)) return;
  const grade = own(grades, score[0]) ?? own(grades, score[0].toLowerCase());
  if (grade !== undefined) score.push(String(grade));
}

/** Block of a sample, and its position in the block. */
export function placeOf(result: Result, number: number): { name: string; index: number } | null {
  let place: { name: string; index: number } | null = null;
  for (const [start, name] of result.parts ?? []) if (start <= number) place = { name, index: number - start };
  return place;
}

let latest: { name: string; read: ReadBlock; lines: string[] } | null = null;

/** Numbers of the samples whose full text contains a needle; `null` if the samples are on other pages. */
export async function searchTexts(result: Result, needle: string, current: () => boolean, progress: (part: number) => void): Promise<Set<number> | null> {
  // Encoded as in a sample, which is a line of JSON.
  const wanted = JSON.stringify(needle).slice(1, -1).toLowerCase();
  const found = new Set<number>(), parts = result.parts ?? [];
  for (let part = 0; part < parts.length && current(); part++) {
    const text = await block(parts[part][1]);
    if (text === null) return null;
    const folded = text.toLowerCase();
    let number = parts[part][0], end = folded.indexOf("\n");
    for (let at = folded.indexOf(wanted); at >= 0; at = folded.indexOf(wanted, Math.max(at + 1, end))) {
      while (end >= 0 && end < at) { number++; end = folded.indexOf("\n", end + 1); }
      found.add(number);
      if (end < 0) break;
    }
    progress((part + 1) / parts.length);
  }
  return found;
}

/** Sample as in the log; `null` if it is on another page. */
export async function readSample(result: Result, number: number, read: ReadBlock = block): Promise<Value | null> {
  const place = placeOf(result, number);
  if (place === null) return null;
  if (latest?.name !== place.name || latest.read !== read) {
    const text = await read(place.name);
    if (text === null) return null;
    const lines = text.split("\n");
    latest = { name: place.name, read, lines };
    return parse(lines[place.index]);
  }
  return parse(latest.lines[place.index]);
}

/** Member with an untrusted name, which may be `constructor`. */
export function own<T>(members: Record<string, T> | undefined, name: string): T | undefined {
  return members !== undefined && Object.hasOwn(members, name) ? members[name] : undefined;
}

/** Score columns of rows: scorer and name, in order of appearance. */
export function scoreColumns(rows: Row[]): string[] {
  const names = new Set<string>();
  for (const row of rows) for (const name in row.s) names.add(name);
  return [...names];
}

export function columnName(column: string): string {
  return column.split("\x1f").join(" · ");
}

export function scoreText(row: Row, column: string): string | undefined {
  const value = own(row.s, column);
  return Array.isArray(value) ? value[0] : value;
}

/** Value of a score for sorting and means: the grade of a graded text, otherwise the text itself. */
export function scoreNumber(row: Row, column: string): string | undefined {
  const value = own(row.s, column);
  return Array.isArray(value) ? value[1] ?? value[0] : value;
}

export function rowStatus(row: Row): string {
  if (row.o === "failed") return `failed: ${[...new Set((row.e ?? []).map(([stage]) => stage))].join(", ")}`;
  return row.o === "not finished" ? row.o : row.x ? "excluded" : row.o === "unscored" ? "not scored" : "scored";
}
