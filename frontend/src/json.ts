/** JSON whose numbers keep their digits: 1.0 stays 1.0, and whole numbers of any size stay whole. */

export class Num {
  constructor(readonly text: string) {}
  get value(): number {
    return Number(this.text);
  }
}

export type Value = null | boolean | string | Num | Value[] | { [key: string]: Value };

const NUMBER = /-?(?:Infinity|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|NaN/y;
const SPACE = /[ \t\n\r]*/y;
const STRING = /"(?:[^"\\]|\\.)*"/sy;

export function parse(text: string): Value {
  let at = 0;

  function match(pattern: RegExp): string | null {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found === null) return null;
    at = pattern.lastIndex;
    return found[0];
  }

  function fail(): never {
    throw new SyntaxError(`unexpected text at ${at}`);
  }

  function string(): string {
    // Most texts contain no escapes and are the slice between their quotes.
    const end = text.indexOf('"', at + 1);
    if (end > 0 && text.lastIndexOf("\\", end) < at) {
      const plain = text.slice(at + 1, end);
      at = end + 1;
      return plain;
    }
    const quoted = match(STRING);
    return quoted === null ? fail() : JSON.parse(quoted);
  }

  function value(): Value {
    match(SPACE);
    const sign = text[at];
    if (sign === '"') return string();
    if (sign === "{") {
      at++;
      const members: { [key: string]: Value } = Object.create(null);
      match(SPACE);
      if (text[at] === "}") return at++, members;
      for (;;) {
        match(SPACE);
        if (text[at] !== '"') fail();
        const key = string();
        match(SPACE);
        if (text[at++] !== ":") fail();
        members[key] = value();
        match(SPACE);
        const next = text[at++];
        if (next === "}") return members;
        if (next !== ",") fail();
      }
    }
    if (sign === "[") {
      at++;
      const items: Value[] = [];
      match(SPACE);
      if (text[at] === "]") return at++, items;
      for (;;) {
        items.push(value());
        match(SPACE);
        const next = text[at++];
        if (next === "]") return items;
        if (next !== ",") fail();
      }
    }
    for (const [word, meaning] of [["true", true], ["false", false], ["null", null]] as const)
      if (text.startsWith(word, at)) return (at += word.length), meaning;
    const number = match(NUMBER);
    return number === null ? fail() : new Num(number);
  }

  const document = value();
  match(SPACE);
  if (at !== text.length) fail();
  return document;
}

/** A value as indented JSON, with the digits of its numbers. */
export function render(value: Value, indent = ""): string {
  if (value instanceof Num) return value.text;
  if (Array.isArray(value)) {
    if (value.length === 0) return "[]";
    const deeper = indent + "  ";
    return `[\n${value.map((item) => deeper + render(item, deeper)).join(",\n")}\n${indent}]`;
  }
  if (value !== null && typeof value === "object") {
    const keys = Object.keys(value);
    if (keys.length === 0) return "{}";
    const deeper = indent + "  ";
    const lines = keys.map((key) => `${deeper}${JSON.stringify(key)}: ${render(value[key], deeper)}`);
    return `{\n${lines.join(",\n")}\n${indent}}`;
  }
  return JSON.stringify(value);
}

export function member(value: Value | undefined, ...names: string[]): Value | undefined {
  for (const name of names)
    value = value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof Num)
      ? (value as { [key: string]: Value })[name] : undefined;
  return value;
}

export function list(value: Value | undefined): Value[] {
  return Array.isArray(value) ? value : [];
}

/** A value as one text: texts unchanged, everything else as JSON. */
export function shown(value: Value | undefined): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : render(value);
}

export type Composite = Value[] | { [key: string]: Value };

export function composite(value: Value | undefined): value is Composite {
  return value !== null && typeof value === "object" && !(value instanceof Num);
}
