/** Numbers, times and counts as people read them. `DESIGN.md` contains the rules. */

const NUMBER = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
/** Between a number and its unit. */
export const NBSP = "\u00a0";

export type Scale = [number, number];

/** A number with at most four significant digits. Whole numbers keep all digits. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en");
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e15)) return value.toExponential(3).replace(/\.?0+e/, "e");
  return Number(value.toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 4 });
}

/** Whether the declared scale makes a number a proportion. */
export function isProportion(scale: Scale | null | undefined): boolean {
  return scale?.[0] === 0 && scale[1] === 1;
}

/** A value in percent if its declared scale is 0 to 1; otherwise the number. */
export function measure(value: number, scale?: Scale | null): string {
  return isProportion(scale) ? `${short(value * 100)}${NBSP}%` : short(value);
}

/** Like `measure`, for a text of the result. Other texts than numbers stay unchanged. */
export function measureText(text: string, scale?: Scale | null): string {
  return NUMBER.test(text) ? measure(Number(text), scale) : text;
}

/** Two ends with one unit: 20.77 to 93.85 %. */
export function range(low: number, high: number, scale?: Scale | null): string {
  return isProportion(scale) ? `${short(low * 100)} to ${short(high * 100)}${NBSP}%` : `${short(low)} to ${short(high)}`;
}

/** A difference: in percentage points if the scale is a proportion. */
export function change(value: number, scale?: Scale | null): string {
  const sign = value >= 0 ? "+" : "−";
  return isProportion(scale) ? `${sign}${short(Math.abs(value) * 100)}${NBSP}pp` : `${sign}${short(Math.abs(value))}`;
}

/** A standard error: in percentage points if the scale is a proportion. */
export function standardError(value: number, scale?: Scale | null): string {
  return isProportion(scale) ? `standard error ${short(value * 100)}${NBSP}pp` : `standard error ${short(value)}`;
}

export function count(value: number): string {
  return value.toLocaleString("en");
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** Seconds in the unit that is easiest to read. */
export function duration(seconds: number): string {
  if (seconds < 0.9995) return `${short(Math.round(seconds * 1e4) / 10)}${NBSP}ms`;
  if (seconds < 59.95) return `${Number(seconds.toPrecision(3))}${NBSP}s`;
  const whole = Math.round(seconds);
  const [days, hours, minutes] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60];
  if (days > 0) return `${days}${NBSP}d ${hours}${NBSP}h`;
  return hours > 0 ? `${hours}${NBSP}h ${minutes}${NBSP}min` : `${minutes}${NBSP}min ${whole % 60}${NBSP}s`;
}

/** Tokens: exact below 10,000, then in thousands and millions. */
export function tokens(value: number): string {
  if (value < 10_000) return count(value);
  const [unit, name] = value < 999_950 ? [1e3, "k"] : value < 999_950_000 ? [1e6, "M"] : [1e9, "G"];
  return `${Number((value / (unit as number)).toPrecision(4))}${NBSP}${name}`;
}

export function bytes(value: number): string {
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]] as const) if (value >= size) return `${(value / size).toFixed(1)}${NBSP}${unit}`;
  return plural(value, "byte");
}

export function moment(seconds: number): string {
  return `${new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** How long ago: 3 h ago. */
export function age(seconds: number, now = Date.now() / 1000): string {
  const past = Math.max(0, now - seconds);
  if (past < 60) return "just now";
  if (past < 3600) return `${Math.floor(past / 60)}${NBSP}min ago`;
  if (past < 2 * 86400) return `${Math.floor(past / 3600)}${NBSP}h ago`;
  return past < 60 * 86400 ? `${Math.floor(past / 86400)}${NBSP}days ago` : new Date(seconds * 1000).toISOString().slice(0, 10);
}
