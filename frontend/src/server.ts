/** Requests to the server of `aigo-bridge view`, which `serving.py` answers. */

import type { ReadBlock, Summary } from "./data";

export interface Entry {
  id: string; kind: "result" | "evaluation" | "log"; name: string; size: number; modified: number; engine: string | null;
  run: { alive: boolean; /** changes with every sample */ version: string } | null; title?: string; model?: string; status?: string; metrics?: [string, string, string][];
  task?: string; samples?: number | null; started?: number | null; seconds?: number | null; dataset?: string | null;
}
export interface FolderListing { folder: string; entries: Entry[]; links: string[]; cut: boolean }

/** Folder of the session: prefix of all addresses. */
export const BASE = `/${location.pathname.split("/")[1]}/`;

/** Error with the reason from the server. */
export class Problem extends Error {}
/** The server does not answer. */
export class Ended extends Error {}

const wait = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

async function ask(path: string, headers: Record<string, string> = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(BASE + path, { headers });
  } catch {
    throw new Ended("the server has ended");
  }
  if (response.ok || response.status === 304) return response;
  const type = response.headers.get("Content-Type") ?? "";
  const text = await response.text();
  throw new Problem(type.startsWith("application/json") ? String(JSON.parse(text).problem) : text.trim());
}

/** Repeat a request until the server has prepared the data. */
async function prepared(path: string, headers: Record<string, string> = {}): Promise<Response> {
  for (let pause = 0.1; ; pause = Math.min(1, pause * 2)) {
    const response = await ask(path, headers);
    if (response.status !== 202) return response;
    await wait(pause);
  }
}

export async function readFolder(): Promise<FolderListing> {
  return (await ask("data/folder")).json();
}

export interface Loaded { tag: string; summary: Summary; read: ReadBlock }

/** Current state of an entry; `null` if it is unchanged. */
export async function readEntry(id: string, tag: string | undefined): Promise<Loaded | null> {
  const response = await prepared(`data/entry/${id}`, tag === undefined ? {} : { "If-None-Match": tag });
  if (response.status === 304) return null;
  const number = response.headers.get("X-Number");
  const read = async (name: string) => (await ask(`data/block/${id}/${number}/${name}`)).text();
  return { tag: response.headers.get("ETag") ?? "", summary: await response.json(), read };
}

export async function readComparison(base: string, other: string): Promise<string> {
  return (await prepared(`data/compare/${base}/${other}`)).text();
}

export interface Chosen { ref: string; name: string }

const CHOSEN = "chosen";

/** Results selected for a comparison in this tab. */
export function chosen(): Chosen[] {
  try {
    return JSON.parse(sessionStorage.getItem(CHOSEN) ?? "[]");
  } catch {
    return [];
  }
}

export function choose(results: Chosen[]) {
  sessionStorage.setItem(CHOSEN, JSON.stringify(results));
}
