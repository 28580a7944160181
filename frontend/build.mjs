// Builds the page's script and style into the Python package. The same source gives the same bytes.
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
await build({ entryPoints: { report: "src/style.css" }, minify: true, outdir: out, absWorkingDir: import.meta.dirname });
