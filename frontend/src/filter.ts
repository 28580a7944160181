/**
 * The filter language of samples: `score < 0.5 and topic == "law"`. `show --where` uses the same one; the shared
 * test cases are in `tests/support/filters.json`.
 *
 *   condition  = conjunction { "or" conjunction }
 *   conjunction = negation { "and" negation }
 *   negation   = [ "not" ] ( "(" condition ")" | comparison )
 *   comparison = name ( "==" | "=" | "!=" | "<" | "<=" | ">" | ">=" | "contains" ) value | name [ "not" ] "in" "(" value { "," value } ")"
 *   name       = letters, digits, "_", "." and "-", or any text in backquotes
 *   value      = number | "text" | 'text' | true | false | null
 *
 * A comparison with a missing value is false, even with `!=` and after `not in`. `== null` finds missing values.
 */

export type Field = string | number | boolean | null | undefined;
export type Test = (get: (name: string) => Field) => boolean;

export class FilterError extends Error {
  constructor(message: string, readonly at: number) {
    super(message);
  }
}

interface Token { kind: "name" | "quoted" | "value" | "sign" | "end"; text: string; value?: Field; at: number }

const PATTERN = /\s+|(==|!=|<=|>=|=|<|>|\(|\)|,)|(-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])|"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|`([^`]*)`|([\p{L}_][\p{L}\p{N}_.-]*)/uy;
const unescaped = (text: string) => text.replace(/\\(.)/gs, (_, sign) => ({ n: "\n", t: "\t" } as Record<string, string>)[sign] ?? sign);

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    PATTERN.lastIndex = at;
    const found = PATTERN.exec(text);
    if (found === null) throw new FilterError(`unexpected ${JSON.stringify(text[at])}`, at);
    const [, sign, number, double, single, quoted, word] = found;
    if (sign !== undefined) tokens.push({ kind: "sign", text: sign, at });
    else if (number !== undefined) tokens.push({ kind: "value", text: number, value: Number(number), at });
    else if (double !== undefined || single !== undefined) tokens.push({ kind: "value", text: found[0], value: unescaped(double ?? single), at });
    else if (quoted !== undefined) tokens.push({ kind: "quoted", text: quoted, at });
    else if (word !== undefined) tokens.push(word === "true" || word === "false" || word === "null" ? { kind: "value", text: word, value: word === "null" ? null : word === "true", at } : { kind: "name", text: word, at });
    at = PATTERN.lastIndex;
  }
  tokens.push({ kind: "end", text: "", at: text.length });
  return tokens;
}

const NUMBER = /^-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;

/** Whether two values are in an order. Numbers in texts are compared as numbers. */
function compared(field: Field, value: Field, hold: (order: number) => boolean): boolean {
  if (field === undefined || field === null) return false;
  if (typeof value === "number") {
    const number = typeof field === "number" ? field : typeof field === "boolean" ? Number(field) : NUMBER.test(field) ? Number(field) : NaN;
    return !Number.isNaN(number) && hold(number - value);
  }
  if (typeof value === "boolean") return hold(String(field).toLowerCase() === String(value) || (typeof field === "number" && field === Number(value)) ? 0 : 1);
  const text = String(field), other = String(value);
  return hold(text < other ? -1 : text > other ? 1 : 0);
}

const SIGNS: Record<string, (order: number) => boolean> = {
  "==": (order) => order === 0, "=": (order) => order === 0, "!=": (order) => order !== 0,
  "<": (order) => order < 0, "<=": (order) => order <= 0, ">": (order) => order > 0, ">=": (order) => order >= 0,
};

/** Compiled condition. `names` are the known fields; `undefined` accepts all. */
export function parseFilter(text: string, names?: (name: string) => boolean): Test {
  const tokens = tokensOf(text);
  let place = 0, depth = 0;
  const peek = () => tokens[place];
  const isWord = (word: string) => peek().kind === "name" && peek().text === word;
  const fail = (expected: string): never => {
    throw new FilterError(`expected ${expected}, found ${peek().kind === "end" ? "the end" : JSON.stringify(peek().text)}`, peek().at);
  };
  const take = (sign: string) => { if (peek().text !== sign || peek().kind !== "sign") fail(sign); place++; };

  function condition(): Test {
    if (++depth > 100) fail("fewer parentheses");
    const parts = [conjunction()];
    while (isWord("or")) { place++; parts.push(conjunction()); }
    depth--;
    return parts.length === 1 ? parts[0] : (get) => parts.some((part) => part(get));
  }
  function conjunction(): Test {
    const parts = [negation()];
    while (isWord("and")) { place++; parts.push(negation()); }
    return parts.length === 1 ? parts[0] : (get) => parts.every((part) => part(get));
  }
  function negation(): Test {
    if (!isWord("not")) return primary();
    place++;
    if (++depth > 100) fail("fewer times not");
    const inner = negation();
    depth--;
    return (get) => !inner(get);
  }
  function primary(): Test {
    if (peek().kind === "sign" && peek().text === "(") {
      place++;
      const inner = condition();
      take(")");
      return inner;
    }
    return comparison();
  }
  function value(): Field {
    const token = peek();
    if (token.kind !== "value") fail(token.kind === "name" ? `a value (texts need quotes: "${token.text}")` : "a value");
    place++;
    return token.value;
  }
  function comparison(): Test {
    const token = peek();
    if (token.kind !== "name" && token.kind !== "quoted") fail("a name");
    const name = token.text;
    if (names && !names(name)) throw new FilterError(`unknown name ${JSON.stringify(name)}`, token.at);
    place++;
    const refuse = isWord("not");
    if (refuse) place++;
    if (isWord("in")) {
      place++;
      take("(");
      const values = [value()];
      while (peek().text === "," && peek().kind === "sign") { place++; values.push(value()); }
      take(")");
      return (get) => {
        const field = get(name);
        if (field === undefined || field === null) return !refuse && values.includes(null);
        return values.some((one) => one !== null && compared(field, one, SIGNS["=="])) !== refuse;
      };
    }
    if (refuse) fail("in");
    if (isWord("contains")) {
      place++;
      const needle = String(value()).toLowerCase();
      return (get) => { const field = get(name); return field !== undefined && field !== null && String(field).toLowerCase().includes(needle); };
    }
    const sign = peek().kind === "sign" && Object.hasOwn(SIGNS, peek().text) ? peek().text : fail("==, !=, <, <=, >, >=, contains or in");
    place++;
    const wanted = value();
    if (wanted === null) {
      if (!["==", "=", "!="].includes(sign)) fail("== or != before null");
      return (get) => ((get(name) ?? null) === null) === (sign !== "!=");
    }
    return (get) => compared(get(name), wanted, SIGNS[sign]);
  }
  const test = condition();
  if (peek().kind !== "end") fail("and, or or the end");
  return test;
}
