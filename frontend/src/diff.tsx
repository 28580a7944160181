/** Two texts next to each other, with the words that differ marked. */

import type { ComponentChildren } from "preact";
import { LongText, Text } from "./text";

const MOST = 1_500;
/** Words, whitespace and single characters. */
const WORDS = /\s+|[\p{L}\p{N}\p{M}_]+|[^\s\p{L}\p{N}\p{M}_]/gu;
/** Smallest proportion of equal words for marks. Texts with fewer equal words are shown without marks. */
const LEAST_EQUAL = 0.15;

/** Parts of two texts: 0 in both, -1 only in the first, 1 only in the second. */
export function difference(one: string, two: string): [number, string][] {
  const a = one.match(WORDS) ?? [], b = two.match(WORDS) ?? [];
  let begin = 0, end = 0;
  while (begin < a.length && begin < b.length && a[begin] === b[begin]) begin++;
  while (end < a.length - begin && end < b.length - begin && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const pieces: [number, string][] = [];
  const put = (kind: number, text: string) => {
    if (text === "") return;
    const top = pieces[pieces.length - 1];
    if (top !== undefined && top[0] === kind) top[1] += text;
    else pieces.push([kind, text]);
  };
  put(0, a.slice(0, begin).join(""));
  const x = a.slice(begin, a.length - end), y = b.slice(begin, b.length - end);
  if (x.length > MOST || y.length > MOST) {
    put(-1, x.join(""));
    put(1, y.join(""));
  } else {
    // Lengths of the longest common subsequences of both remainders.
    const width = y.length + 1;
    const lengths = new Uint16Array((x.length + 1) * width);
    for (let i = x.length - 1; i >= 0; i--)
      for (let j = y.length - 1; j >= 0; j--)
        lengths[i * width + j] = x[i] === y[j] ? lengths[(i + 1) * width + j + 1] + 1
          : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    let i = 0, j = 0;
    while (i < x.length || j < y.length) {
      if (i < x.length && j < y.length && x[i] === y[j]) put(0, x[i++]), j++;
      else if (j >= y.length || (i < x.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) put(-1, x[i++]);
      else put(1, y[j++]);
    }
  }
  put(0, a.slice(a.length - end).join(""));
  return pieces;
}

/** The two texts with marks; without marks if they have few words in common. */
export function marked(one: string, two: string): [ComponentChildren, ComponentChildren] {
  const pieces = difference(one, two);
  const equal = pieces.reduce((sum, [kind, text]) => sum + (kind === 0 ? text.trim().length : 0), 0);
  const long = Math.min(one.length, two.length) > 60;
  if (long && equal < LEAST_EQUAL * Math.min(one.length, two.length)) return [<LongText text={one} />, <LongText text={two} />];
  const side = (kind: number) => <div class="long">{pieces.filter(([sign]) => sign === 0 || sign === kind).map(([sign, text]) =>
    sign === 0 ? <Text>{text}</Text> : sign < 0 ? <del><Text>{text}</Text></del> : <ins><Text>{text}</Text></ins>)}</div>;
  return [side(-1), side(1)];
}

export function Diff({ one, two, names }: { one: string; two: string; names: [string, string] }) {
  const [left, right] = marked(one, two);
  return (
    <div class="diff">
      <div tabIndex={0}><h5>{names[0]}</h5>{left}</div>
      <div tabIndex={0}><h5>{names[1]}{one === two ? " (the same)" : ""}</h5>{right}</div>
    </div>
  );
}
