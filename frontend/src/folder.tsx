/** Folder on the server: its runs, and the runs selected for a comparison. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Summary } from "./data";
import { BASE, choose, chosen, readEntry, type Chosen, type Entry, type FolderListing } from "./server";
import { MOST_CHOSEN, runOf, Start, Tray, type Run } from "./start";
import { Empty, Status, Text, Wide } from "./text";
import { When } from "./value";
import { bytes, plural } from "./format";

export const comparisonOf = (refs: string[]) => `${BASE}compare/${refs.join("/")}`;

export function useChosen(): [Chosen[], (results: Chosen[]) => void] {
  const [results, setResults] = useState(chosen);
  return [results, (next) => { choose(next.slice(-MOST_CHOSEN)); setResults(next.slice(-MOST_CHOSEN)); }];
}

/** Largest entry in bytes, and number of entries, that the start page reads for intervals and counts. */
const MOST_BYTES = 8e6, MOST_ENTRIES = 40;

/** Stamp that changes with the file and with the progress of its run. */
const stampOf = (entry: Entry) => `${entry.modified}.${entry.run?.alive}.${entry.run?.version}`;

/** Summaries of entries, read one by one while the list is shown. The list shows the data of the files immediately, and the summaries as they arrive. */
function useSummaries(entries: Entry[]): Map<string, Summary> {
  const [summaries, setSummaries] = useState(new Map<string, Summary>());
  const seen = useRef(new Map<string, string>());
  useEffect(() => {
    let current = true;
    (async () => {
      const wanted = entries.filter((entry) => entry.kind !== "evaluation" && entry.size <= MOST_BYTES).sort((a, b) => Number(a.kind === "log") - Number(b.kind === "log") || b.modified - a.modified).slice(0, MOST_ENTRIES);
      const next = async () => {
        for (let entry = wanted.shift(); entry && current; entry = wanted.shift()) {
          const { id } = entry, stamp = stampOf(entry);
          if (seen.current.get(id) === stamp) continue;
          const loaded = await readEntry(id, undefined).catch(() => null);
          if (!current) return;
          seen.current.set(id, stamp);
          if (loaded) setSummaries((before) => new Map(before).set(id, loaded.summary));
        }
      };
      // One request for each process of the server.
      await Promise.all([next(), next()]);
    })();
    return () => { current = false; };
  }, [entries.map((entry) => `${entry.id}.${stampOf(entry)}`).join()]);
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
  const running = others.filter((entry) => entry.run?.alive).length;
  return (
    <div class="folders">
      <Tray results={picked} change={setPicked} href={comparisonOf} />
      {running > 0 && <p class="running" role="status"><Status status="running">{plural(running, "run")} in progress</Status></p>}
      <Evaluations entries={evaluations} />
      {others.length > 0 ? <Start runs={runs} choice={{ picked, change: setPicked, href: comparisonOf }} />
        : evaluations.length === 0 && <Empty title="The folder does not contain a result, evaluation or engine log."><p>New files are shown here as they appear.</p></Empty>}
      {others.some((entry) => entry.engine) && <p class="note">Engine logs are imported when they are opened. Nothing is written into the folder.</p>}
      {listing.cut && <p class="error">The folder has more files than are shown. Open a subfolder.</p>}
      {listing.links.length > 0 && <p class="note">Links to places outside the folder are not followed: <Text>{listing.links.join(", ")}</Text></p>}
    </div>
  );
}
