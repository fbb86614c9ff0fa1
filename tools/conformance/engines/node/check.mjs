// Runs the models of gsrc exports on the test data that they carry, in onnxruntime-node, and
// compares the outputs.
//
//   npm ci --ignore-scripts && node check.mjs DIST...
//
// An export carries more graphs than one where it was built with --test-cases. Prints a line for
// each model; exit code 1 after a failure.
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import * as ort from "onnxruntime-node";
import { checkModel } from "./tensors.mjs";

const folders = process.argv.slice(2);
if (folders.length === 0) {
  console.error("usage: node check.mjs DIST...");
  process.exit(2);
}
console.log(`runtime onnxruntime-node ${ort.env.versions.node}`);
let failed = false;
for (const dist of folders) {
  const load = (name) => readFile(join(dist, name));
  const manifest = JSON.parse(await load("manifest.json"));
  for (const [role, info] of Object.entries(manifest.models).sort()) {
    let line;
    try {
      line = await checkModel(ort, info, load);
    } catch (error) {
      line = `FAIL ${String(error.message ?? error).replace(/\s+/g, " ").slice(0, 300)}`;
      failed = true;
    }
    console.log(basename(dist), role, line);
  }
}
process.exit(failed ? 1 : 0);
