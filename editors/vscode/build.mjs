// Bundles the extension with its client library into one file, and the licences of what is in it into another; `vscode` is the editor's own.
import { copyFile, mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { build } from "esbuild";

const here = import.meta.dirname;
const out = process.argv[2] ?? join(here, "dist");
const { metafile } = await build({
  entryPoints: ["src/extension.js"],
  bundle: true,
  charset: "ascii",
  external: ["vscode"],
  format: "cjs",
  legalComments: "none",
  metafile: true,
  minify: true,
  outfile: join(out, "extension.js"),
  platform: "node",
  target: "node20",
  absWorkingDir: here,
});

const packages = new Set();
for (const input of Object.keys(metafile.inputs)) {
  const parts = input.split("node_modules/");
  if (parts.length > 1) {
    const [first, second] = parts.at(-1).split("/");
    packages.add(parts.slice(0, -1).join("node_modules/") + "node_modules/" + (first.startsWith("@") ? `${first}/${second}` : first));
  }
}
const notices = [];
for (const folder of [...packages].sort()) {
  const { name, version, license } = JSON.parse(await readFile(join(here, folder, "package.json"), "utf8"));
  const file = (await readdir(join(here, folder))).find((each) => /^licen[cs]e/i.test(each));
  const text = file ? await readFile(join(here, folder, file), "utf8") : "";
  notices.push(`${name} ${version} (${license})\n\n${text.trim()}\n`);
}
await mkdir(out, { recursive: true });
await writeFile(join(out, "NOTICES.txt"), notices.join("\n----\n\n"));
if (out === join(here, "dist")) {
  await copyFile(join(dirname(dirname(here)), "LICENSE"), join(here, "LICENSE"));
}
