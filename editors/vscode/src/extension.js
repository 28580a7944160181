// Starts `aigo-bridge lsp` and previews the prompt of a row.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const SCHEME = "aigo-bridge-prompt";
const INSTALL = "pip install 'aigo-bridge[lsp]'";
const SELECTOR = [
  { scheme: "file", language: "yaml" },
  // Prompts and snippets that tasks include.
  { scheme: "file", pattern: "**/*.{md,txt,j2,jinja,jinja2,py}" },
];

let client;

/** Create the language client from the user settings. */
function newClient() {
  const settings = vscode.workspace.getConfiguration("aigoBridge");
  const [command, ...args] = settings.get("command");
  return new LanguageClient(
    "aigoBridge",
    "aigo-bridge",
    { command, args },
    {
      documentSelector: SELECTOR,
      initializationOptions: { prompts: settings.get("prompts") },
      synchronize: {
        fileEvents: vscode.workspace.createFileSystemWatcher("**/*.{yaml,yml,jsonl,csv,json,parquet,md,txt,py}"),
      },
    },
  );
}

async function start() {
  client = newClient();
  try {
    await client.start();
  } catch (error) {
    const choice = await vscode.window.showErrorMessage(
      `aigo-bridge: cannot start the language server (${error.message}). Install it with: ${INSTALL}`,
      "Settings",
    );
    if (choice) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "aigoBridge.command");
    }
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running?.isRunning()) {
    await running.stop();
  }
}

/** Prompts as documents: `aigo-bridge-prompt:row 1.md?<uri of the task>#<row>`. */
class Prompts {
  async provideTextDocumentContent(uri) {
    if (!client?.isRunning()) {
      return "The language server is not running.";
    }
    const answer = await client.sendRequest("aigoBridge/prompt", { uri: uri.query, row: Number(uri.fragment) });
    return answer.markdown;
  }
}

/** Preview the prompt of the given row, or ask the user for a row. */
async function showPrompt(task, row) {
  const uri = task ?? vscode.window.activeTextEditor?.document.uri.toString();
  const number = row ?? (await askForRow());
  if (uri === undefined || number === undefined) {
    return;
  }
  const page = vscode.Uri.from({ scheme: SCHEME, path: `row ${number}.md`, query: uri, fragment: String(number) });
  await vscode.commands.executeCommand("markdown.showPreviewToSide", page);
}

async function askForRow() {
  const text = await vscode.window.showInputBox({
    prompt: "Row number in the dataset, starting at 1",
    value: "1",
    validateInput: (value) => (/^[1-9]\d*$/.test(value) ? undefined : "Enter a number of at least 1"),
  });
  return text === undefined ? undefined : Number(text);
}

async function activate(context) {
  context.subscriptions.push(
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, new Prompts()),
    vscode.commands.registerCommand("aigoBridge.showPrompt", showPrompt),
    vscode.commands.registerCommand("aigoBridge.restart", async () => {
      await stop();
      await start();
    }),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("aigoBridge")) {
        await stop();
        await start();
      }
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
