/** A folder as the server sees it: its runs, and those that are chosen for a comparison. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Summary } from "./data";
import { BASE, choose, chosen, readEntry, type Chosen, type Entry, type FolderListing } from "./server";
import { runOf, Start, type Run } from "./start";
import { Empty, Status, Text, Wide } from "./text";
import { When } from "./value";
import { bytes, plural } from "./format";

const MOST_CHOSEN = 6;

/** What is chosen, and the way to the comparison. */
export function Tray({ results, change }: { results: Chosen[]; change: (results: Chosen[]) => void }) {
  if (results.length === 0) return null;
  return (
    <p class="tray" role="status">
      <span>{results.length === 1 ? "Chosen for a comparison: " : "Compare "}
        {results.map((one, place) => <>{place > 0 && " with "}<b><Text>{one.name}</Text></b></>)}{results.length === 1 && ". Choose another one."}</span>
      {results.length > 1 && <a class="button primary" href={`${BASE}compare/${results.map((one) => one.ref).join("/")}`}>Compare</a>}
      <button onClick={() => change([])}>Clear</button>
    </p>
  );
}

export function useChosen(): [Chosen[], (results: Chosen[]) => void] {
  const [results, setResults] = useState(chosen);
  return [results, (next) => { choose(next.slice(-MOST_CHOSEN)); setResults(next.slice(-MOST_CHOSEN)); }];
}

/** Bytes of an entry, and entries, that the start page has read for their intervals and counts. */
const MOST_BYTES = 8e6, MOST_ENTRIES = 40;

/** The summaries of entries, read one by one while the list is shown: lists show what files say at once, then the rest. */
function useSummaries(entries: Entry[]): Map<string, Summary> {
  const [summaries, setSummaries] = useState(new Map<string, Summary>());
  const seen = useRef(new Map<string, number>());
  useEffect(() => {
    let current = true;
    (async () => {
      const wanted = entries.filter((entry) => entry.kind !== "evaluation" && entry.size <= MOST_BYTES).sort((a, b) => Number(a.kind === "log") - Number(b.kind === "log") || b.modified - a.modified).slice(0, MOST_ENTRIES);
      const next = async () => {
        for (let entry = wanted.shift(); entry && current; entry = wanted.shift()) {
          if (seen.current.get(entry.id) === entry.modified) continue;
          const { id, modified } = entry, loaded = await readEntry(id, undefined).catch(() => null);
          if (!current) return;
          seen.current.set(id, modified);
          if (loaded) setSummaries((before) => new Map(before).set(id, loaded.summary));
        }
      };
      // As many at a time as the server has processes.
      await Promise.all([next(), next()]);
    })();
    return () => { current = false; };
  }, [entries.map((entry) => `${entry.id}.${entry.modified}`).join()]);
  return summaries;
}

function runsOf(entry: Entry, summary: Summary | undefined): Run[] {
  const href = `${BASE}r/${entry.id}`;
  const state = entry.run === null ? undefined : entry.run.alive ? "running" : "ended early";
  if (summary !== undefined)
    return summary.results.map((result, place) => ({
      ...runOf(result, `${entry.id}.${place}`, summary.results.length > 1 ? `${href}#result=${place}` : href), log: entry.engine, file: entry.name, size: entry.size,
      changed: entry.modified, ref: result.counts ? `${entry.id}.${place}` : undefined, ...(state && { status: state }),
      progress: summary.run ? { done: summary.run.done ?? result.counts?.trials ?? 0, total: summary.run.total ?? null } : undefined,
    }));
  const [first] = entry.metrics ?? [];
  return [{
    id: entry.id, href, title: entry.title || entry.name, task: entry.task ?? "", model: entry.model ?? "", log: entry.engine, status: state ?? (entry.status || "not read"), file: entry.name, size: entry.size,
    changed: entry.modified, ref: `${entry.id}.0`, more: Math.max(0, (entry.metrics?.length ?? 0) - 1), metric: first && { name: first[1], label: first[1], text: first[2] },
    samples: entry.samples ?? undefined, started: entry.started ?? undefined, seconds: entry.seconds ?? undefined, dataset: entry.dataset ?? undefined,
  }];
}

function Evaluations({ entries }: { entries: Entry[] }) {
  if (entries.length === 0) return null;
  return (
    <Wide label="Evaluations"><table class="listed stacked"><caption>Evaluations <small>{entries.length}</small></caption>
      <thead><tr><th scope="col">file</th><th scope="col">changed</th><th scope="col" class="number">size</th></tr></thead>
      <tbody>{entries.map((entry) => (
        <tr key={entry.id}><th scope="row"><a href={`${BASE}r/${entry.id}`}><Text>{entry.name}</Text></a></th>
          <td data-label="changed"><When seconds={entry.modified} aged /></td><td class="number" data-label="size">{bytes(entry.size)}</td></tr>
      ))}</tbody></table></Wide>
  );
}

export function FolderView({ listing }: { listing: FolderListing }) {
  const [picked, setPicked] = useChosen();
  const evaluations = listing.entries.filter((entry) => entry.kind === "evaluation"), others = listing.entries.filter((entry) => entry.kind !== "evaluation");
  const summaries = useSummaries(others);
  const runs = others.flatMap((entry) => runsOf(entry, summaries.get(entry.id)));
  const pick = (run: Run, on: boolean) => {
    const rest = picked.filter((one) => one.ref !== run.ref);
    setPicked(on ? [...rest, { ref: run.ref!, name: run.model ? `${run.title} · ${run.model}` : run.title }] : rest);
  };
  const running = others.filter((entry) => entry.run?.alive).length;
  return (
    <div class="folders">
      <Tray results={picked} change={setPicked} />
      {running > 0 && <p class="running" role="status"><Status status="running">{plural(running, "run")} in progress</Status></p>}
      <Evaluations entries={evaluations} />
      {others.length > 0 ? <Start runs={runs} pick={pick} isPicked={(run) => picked.some((one) => one.ref === run.ref)} />
        : evaluations.length === 0 && <Empty title="The folder has no result, evaluation or engine log."><p>New files are shown here as they appear.</p></Empty>}
      {others.some((entry) => entry.engine) && <p class="note">Engine logs are imported when they are opened. Nothing is written into the folder.</p>}
      {listing.cut && <p class="error">The folder has more files than are shown. Open a subfolder.</p>}
      {listing.links.length > 0 && <p class="note">Links that lead out of the folder are not followed: <Text>{listing.links.join(", ")}</Text></p>}
    </div>
  );
}
