/** Pages of a server: folder, entry, comparison. Each page follows changes. */

import { render, type ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { App, Theme, titleOf, type Tables } from "./app";
import { Comparisons } from "./comparison";
import { readFrom, readRows, type Summary } from "./data";
import { comparisonOf, FolderView, useChosen } from "./folder";
import { plural } from "./format";
import { member, parse, type Value } from "./json";
import { BASE, Ended, readComparison, readEntry, readFolder, type FolderListing } from "./server";
import { Progress, Tray } from "./start";
import { Text } from "./text";

const OFTEN = 2, SELDOM = 4;
const ORIGIN = "Served by aigo-bridge to this machine only. It reads the folder and changes nothing.";

/** Repeat a request while the page is visible, and return the last error. */
function useLooks(look: () => Promise<number>): unknown {
  const [fault, setFault] = useState<unknown>(null);
  const latest = useRef(look);
  latest.current = look;
  useEffect(() => {
    let timer: number | undefined, stopped = false, busy = false;
    const again = async () => {
      if (busy || stopped) return;
      clearTimeout(timer);
      if (document.hidden) return;
      busy = true;
      let pause = SELDOM;
      try {
        pause = await latest.current();
        setFault(null);
      } catch (error) {
        setFault(error);
      }
      busy = false;
      if (!stopped) timer = setTimeout(again, pause * 1000);
    };
    again();
    document.addEventListener("visibilitychange", again);
    return () => { stopped = true; clearTimeout(timer); document.removeEventListener("visibilitychange", again); };
  }, []);
  return fault;
}

function Fault({ fault, shown }: { fault: unknown; shown: boolean }) {
  if (fault === null) return null;
  if (fault instanceof Ended) return <p class="error" role="alert">The server has stopped{shown ? ". The page shows the last state" : ""}. Restart it with <code>aigo-bridge view</code>.</p>;
  const text = fault instanceof Error ? fault.message : String(fault);
  return <p class="error" role="alert"><Text>{text}</Text>{shown && ". The page shows the last state."}</p>;
}

const BACK = <a class="back" href={BASE}>← Folder</a>;

function Frame({ title, before, children }: { title: string; before?: ComponentChildren; children: ComponentChildren }) {
  return (
    <>
      <header>{before}<h1><Text>{title}</Text></h1><span class="tools"><Theme /></span></header>
      <main>{children}</main>
      <footer><p>{ORIGIN}</p></footer>
    </>
  );
}

function FolderPage() {
  const [listing, setListing] = useState<FolderListing | null>(null);
  const fault = useLooks(async () => {
    const next = await readFolder();
    document.title = `${next.folder}: results`;
    setListing(next);
    return SELDOM;
  });
  return (
    <Frame title={listing?.folder ?? "Results"}>
      <Fault fault={fault} shown={listing !== null} />
      {listing !== null ? <FolderView listing={listing} /> : fault === null && <p class="note" role="status">reading …</p>}
    </Frame>
  );
}

function Running({ summary }: { summary: Summary }) {
  const run = summary.run;
  if (!run) return null;
  return (
    <p class="running" role="status">{run.alive && typeof run.done === "number" && <Progress done={run.done} total={run.total ?? null} />}{run.alive
      ? `The run is in progress: ${plural(run.live, "trial")} ${run.live === 1 ? "is" : "are"} not in its log yet. Metrics are computed when it ends.`
      : `The run ended before it was complete${run.live ? `: ${plural(run.live, "trial")} ${run.live === 1 ? "is" : "are"} not in its log` : ""}. Metrics on this page are not final.`}</p>
  );
}

interface Shown { tag: string; summary: Summary; tables: Tables }

function EntryPage({ id }: { id: string }) {
  const [shown, setShown] = useState<Shown | null>(null);
  const [picked, setPicked] = useChosen();
  const fault = useLooks(async () => {
    const loaded = await readEntry(id, shown?.tag);
    if (loaded !== null) {
      const { tag, summary, read } = loaded;
      const rows = summary.results.map((result) => readRows(result, read));
      if (shown === null) {
        // The first view does not need rows.
        readFrom(read);
        document.title = titleOf(summary);
        setShown({ tag, summary, tables: new Map() });
      }
      const tables: Tables = new Map((await Promise.all(rows)).map((each, number) => [number, each]));
      // Update everything together, so that numbers and rows are consistent.
      readFrom(read);
      setShown({ tag, summary, tables });
    }
    return (loaded?.summary ?? shown?.summary)?.run?.alive ? OFTEN : SELDOM;
  });
  if (shown === null)
    return <Frame title="Results" before={BACK}><Fault fault={fault} shown={false} />{fault === null && <p class="note" role="status">reading …</p>}</Frame>;
  const { summary, tables } = shown;
  const isPicked = (number: number) => picked.some((one) => one.ref === `${id}.${number}`);
  const banner = (
    <>
      <Fault fault={fault} shown />
      <Running summary={summary} />
      <Tray results={picked} change={setPicked} href={comparisonOf} />
      {summary.results.some((result, number) => result.counts && !isPicked(number)) && (
        <p class="choice screen">{summary.results.map((result, number) => result.counts && !isPicked(number) && (
          <button onClick={() => setPicked([...picked, { ref: `${id}.${number}`, name: `${result.title} · ${result.model}` }])}>Choose {summary.results.length > 1 ? <Text>{`${result.title} · ${result.model}`}</Text> : "it"} for a comparison</button>
        ))}</p>
      )}
    </>
  );
  return <App summary={summary} tables={tables} around={{ before: BACK, banner, origin: ORIGIN }} />;
}

function ComparisonPage({ base, others }: { base: string; others: string[] }) {
  const [shown, setShown] = useState<{ texts: string[]; contents: Value[] } | null>(null);
  const fault = useLooks(async () => {
    const texts = await Promise.all(others.map((other) => readComparison(base, other)));
    if (texts.join() !== shown?.texts.join()) setShown({ texts, contents: texts.map(parse) });
    return SELDOM;
  });
  if (shown === null) return <Frame title="Comparison" before={BACK}><Fault fault={fault} shown={false} />{fault === null && <p class="note" role="status">comparing …</p>}</Frame>;
  return (
    <Frame title={`Comparison${text(member(shown.contents[0], "base", "title")) && `: ${text(member(shown.contents[0], "base", "title"))}`}`} before={BACK}>
      <Fault fault={fault} shown />
      <Comparisons contents={shown.contents} />
    </Frame>
  );
}

const text = (value: Value | undefined) => (typeof value === "string" ? value : "");

export function startView(root: HTMLElement) {
  const [kind, ...names] = location.pathname.slice(BASE.length).split("/");
  root.textContent = "";
  if (kind === "r") return render(<EntryPage id={names[0]} />, root);
  if (kind === "compare") {
    document.title = "Comparison";
    return render(<ComparisonPage base={names[0]} others={names.slice(1)} />, root);
  }
  render(<FolderPage />, root);
}
