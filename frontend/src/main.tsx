/** Entry point: a file that contains its data, or a page of the server. */

import { render } from "preact";
import { App, titleOf, useTables } from "./app";
import { readSummary, type Summary } from "./data";
import { copyFullValues } from "./value";
import { startView } from "./view";

function Report({ summary }: { summary: Summary }) {
  const tables = useTables(summary);
  return <App summary={summary} tables={tables} around={{ origin: `Written by aigo-bridge ${summary.version}. The page works without a network.` }} />;
}

async function start() {
  const root = document.getElementById("app")!;
  copyFullValues();
  try {
    if (document.body.dataset.view !== undefined) return startView(root);
    const summary = await readSummary();
    document.title = titleOf(summary);
    root.textContent = "";
    render(<Report summary={summary} />, root);
  } catch (error) {
    root.textContent = `The page cannot be shown: ${error}. It needs a browser from 2023 or later.`;
  }
}

start();
