// Builds the page's script and style into the Python package. The same source always produces the same bytes.
import { readFile, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { build } from "esbuild";

const out = process.argv[2] ?? "../extras/aigo_report/page/page";
await build({
  entryPoints: { report: "src/main.tsx" },
  bundle: true,
  minify: true,
  charset: "ascii",
  format: "iife",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  outdir: out,
  absWorkingDir: import.meta.dirname,
});
// `charset` does not apply to regular expressions, in which a character and its escape are the same. A page must not contain `<!--` in
// its script, and no addresses. The libraries have addresses in their messages for developers.
const script = resolve(import.meta.dirname, out, "report.js");
const escaped = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
const text = (await readFile(script, "utf-8")).replace(/[^\x00-\x7f]/g, escaped).replaceAll("<!--", "<\\x21--").replace(/https:\/\/github\.com\/[\w./-]+/g, "");
await writeFile(script, text);
await build({ entryPoints: { report: "src/style.css" }, minify: true, outdir: out, absWorkingDir: import.meta.dirname });
