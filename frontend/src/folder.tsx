/** A folder: what goes on in it, what is done, what can be compared. */

import type { ComponentChildren } from "preact";
import { BASE, choose, chosen, type Chosen, type Entry, type FolderListing } from "./server";
import { Status } from "./summary";
import { Text, Wide } from "./text";
import { useState } from "preact/hooks";

function size(bytes: number): string {
  for (const [unit, number] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]] as const) if (bytes >= number) return `${(bytes / number).toFixed(1)} ${unit}`;
  return `${bytes} bytes`;
}

function moment(seconds: number): string {
  return `${new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** What is chosen, and the way to the comparison. */
export function Tray({ results, change }: { results: Chosen[]; change: (results: Chosen[]) => void }) {
  if (results.length === 0) return null;
  return (
    <p class="tray" role="status">
      {results.length === 1 ? "Chosen for a comparison: " : "Compare "}
      {results.map((one, place) => <>{place > 0 && " with "}<b><Text>{one.name}</Text></b></>)}
      {results.length === 1 && "; choose another one. "}
      {results.length === 2 && <> <a class="button" href={`${BASE}compare/${results[0].ref}/${results[1].ref}`}>compare</a></>}
      {" "}<button onClick={() => change([])}>clear</button>
    </p>
  );
}

export function useChosen(): [Chosen[], (results: Chosen[]) => void] {
  const [results, setResults] = useState(chosen);
  return [results, (next) => { choose(next.slice(-2)); setResults(next.slice(-2)); }];
}

function Rows({ caption, entries, picked, pick, note }: {
  caption: string; entries: Entry[]; picked: Chosen[]; pick: (entry: Entry, on: boolean) => void; note?: ComponentChildren;
}) {
  if (entries.length === 0) return null;
  return (
    <section>
      <Wide label={caption}><table class="folder">
        <caption>{caption} ({entries.length})</caption>
        <thead><tr><th scope="col">compare</th><th scope="col">name</th><th scope="col">what</th><th scope="col">metrics</th>
          <th scope="col">changed</th><th scope="col" class="number">size</th></tr></thead>
        <tbody>{entries.map((entry) => (
          <tr key={entry.id}>
            <td>{entry.kind !== "evaluation" && <input type="checkbox" aria-label={`compare ${entry.name}`} checked={picked.some((one) => one.ref === `${entry.id}.0`)}
              onChange={(event) => pick(entry, event.currentTarget.checked)} />}</td>
            <th scope="row"><a href={`${BASE}r/${entry.id}`}><Text>{entry.name}</Text></a></th>
            <td>{entry.run && <div>{entry.run.alive ? <Status status="running" /> : <span class="status bad">ended before it had finished</span>}</div>}
              {entry.title && <div><Text>{entry.title}</Text></div>}
              {entry.model && <div><small><Text>{entry.model}</Text></small></div>}
              {entry.status && entry.status !== "success" && <Status status={entry.status} />}
              {entry.engine && <small>log of <Text>{entry.engine}</Text></small>}</td>
            <td>{(entry.metrics ?? []).map(([scorer, name, text]) => <div><Text>{name}</Text> <b>{text}</b> <small><Text>{scorer}</Text></small></div>)}</td>
            <td>{moment(entry.modified)}</td><td class="number">{size(entry.size)}</td>
          </tr>
        ))}</tbody>
      </table></Wide>{note}
    </section>
  );
}

export function FolderView({ listing }: { listing: FolderListing }) {
  const [picked, setPicked] = useChosen();
  const pick = (entry: Entry, on: boolean) => {
    const ref = `${entry.id}.0`;
    const others = picked.filter((one) => one.ref !== ref);
    setPicked(on ? [...others, { ref, name: entry.name }] : others);
  };
  const newest = (entries: Entry[]) => entries.sort((a, b) => b.modified - a.modified || a.name.localeCompare(b.name));
  const rest = listing.entries.filter((entry) => entry.run === null);
  const of = (kind: Entry["kind"]) => newest(rest.filter((entry) => entry.kind === kind));
  const shared = { picked, pick };
  return (
    <div class="folders">
      <Tray results={picked} change={setPicked} />
      <Rows caption="Runs that have not ended" entries={newest(listing.entries.filter((entry) => entry.run !== null))} {...shared} />
      <Rows caption="Evaluations" entries={of("evaluation")} {...shared} />
      <Rows caption="Results" entries={of("result")} {...shared} />
      <Rows caption="Logs of engines" entries={of("log")} {...shared} note={<p class="note">They are imported when they are opened; nothing is written into the folder.</p>} />
      {listing.entries.length === 0 && <p class="note">There is no result, evaluation or log of an engine in the folder. What comes is shown here.</p>}
      {listing.cut && <p class="error">The folder has more than is shown: look at a part of it.</p>}
      {listing.links.length > 0 && <p class="note">Not followed, as they lead out of the folder: <Text>{listing.links.join(", ")}</Text></p>}
    </div>
  );
}
