// Serves a page that runs the models of gsrc exports in onnxruntime-web (WebAssembly), and opens
// it in a headless Chromium that reports here.
//
//   npm ci --ignore-scripts
//   node check.mjs DIST...            checks, prints a line for each model, exit code 1 after a failure
//   node check.mjs --serve DIST...    serves the page for your own browser, with the graph drawn
//
// CHROMIUM names the browser where it is not on the PATH.
import { spawn, spawnSync } from "node:child_process";
import { createReadStream, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { basename, dirname, join, normalize, sep } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const serve = process.argv[2] === "--serve";
const folders = process.argv.slice(serve ? 3 : 2);
if (folders.length === 0) {
  console.error("usage: node check.mjs [--serve] DIST...");
  process.exit(2);
}
const web = join(here, "node_modules", "onnxruntime-web");
const roots = new Map([["page", here], ["ort", join(web, "dist")], ["lib", join(here, "..", "node")]]);
for (const folder of folders) roots.set(`dist-${basename(folder)}`, folder);
const types = { html: "text/html; charset=utf-8", mjs: "text/javascript", js: "text/javascript", wasm: "application/wasm", json: "application/json" };
let failed = false;

const server = createServer((request, response) => {
  const path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
  if (request.method === "POST" && path === "/line") {
    let text = "";
    request.on("data", (part) => (text += part));
    request.on("end", () => {
      response.end();
      if (text === "end") return finish();
      console.log(text);
      failed ||= / FAIL /.test(text);
    });
    return;
  }
  if (path === "/exports.json") return response.end(JSON.stringify({ names: folders.map((f) => basename(f)), version: JSON.parse(readFileSync(join(web, "package.json"))).version }));
  const [, root, ...rest] = (path === "/" ? "/page/index.html" : path).split("/");
  const base = roots.get(root), file = base && normalize(join(base, ...rest));
  try {
    if (!file?.startsWith(normalize(base + sep)) || !statSync(file).isFile()) throw new Error();
  } catch {
    response.writeHead(404).end();
    return;
  }
  // With these headers the page may share memory among threads.
  response.writeHead(200, {
    "content-type": types[file.split(".").pop()] ?? "application/octet-stream",
    "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp",
  });
  createReadStream(file).pipe(response);
});

let browser, profile, done = false;
function finish(problem) {
  if (done) return;
  done = true;
  if (problem) console.error(problem);
  server.close();
  const end = () => {
    // Chromium's other processes may take a moment to let go of it.
    if (profile) rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
    process.exit(failed || problem ? 1 : 0);
  };
  if (!browser || browser.exitCode !== null || browser.signalCode !== null) return end();
  browser.once("exit", end);
  browser.kill();
}

server.listen(0, "127.0.0.1", () => {
  const url = `http://127.0.0.1:${server.address().port}/`;
  if (serve) return console.log(`open ${url}`);
  const name = [process.env.CHROMIUM, "chromium", "chromium-browser", "google-chrome"].find((n) => n && spawnSync(n, ["--version"]).status === 0);
  if (!name) finish("there is no Chromium; CHROMIUM names one");
  profile = mkdtempSync(join(tmpdir(), "conformance-"));
  browser = spawn(name, ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", `--user-data-dir=${profile}`, `${url}?check`], { stdio: "ignore" });
  browser.on("exit", (code) => finish(`the browser ended early, with code ${code}`));
  setTimeout(() => finish("no answer from the page within 20 minutes"), 20 * 60_000).unref();
});
