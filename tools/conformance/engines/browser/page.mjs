// The page: checks the exports that the server offers, classifies one and draws its graph.
import * as ort from "/ort/ort.wasm.min.mjs";
import { checkModel, readTensor } from "/lib/tensors.mjs";
import { draw } from "/page/draw.mjs";

ort.env.wasm.wasmPaths = "/ort/";
ort.env.wasm.numThreads = 1;
ort.env.logLevel = "fatal";

const by = (id) => document.getElementById(id);
const headless = location.search === "?check";
const { names, version } = await (await fetch("/exports.json")).json();
for (const name of names) by("export").append(new Option(name));

const loader = (dist) => async (name) => {
  const response = await fetch(`/dist-${dist}/${name}`);
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
};
const manifestOf = async (dist) => JSON.parse(new TextDecoder().decode(await loader(dist)("manifest.json")));

async function say(line) {
  by("lines").append(`${line}\n`);
  if (headless) await fetch("/line", { method: "POST", body: line });
}

// check runs every test case of every model of an export.
async function check(dist) {
  const load = loader(dist);
  for (const [role, info] of Object.entries((await manifestOf(dist)).models).sort()) {
    let line;
    try {
      line = await checkModel(ort, info, load);
    } catch (error) {
      line = `FAIL ${String(error.message ?? error).replace(/\s+/g, " ").slice(0, 300)}`;
    }
    await say(`${dist} ${role} ${line}`);
  }
}

// classify runs the classifier on the graph of the training, or on part of it where the export
// carries no more, and draws what it read. It returns how many nodes there are.
async function classify(dist) {
  const load = loader(dist), manifest = await manifestOf(dist), info = manifest.models.classifier;
  const test = info.test_cases?.find((c) => c.name === "training graph") ?? { data: info.test_data };
  const feeds = {};
  for (let i = 0; i < info.inputs.length; i++) {
    const t = readTensor(await load(`${test.data}/input_${i}.pb`));
    feeds[t.name] = new ort.Tensor(t.type, t.data, t.dims);
  }
  const session = await ort.InferenceSession.create(await load(info.file), { logSeverityLevel: 4 });
  const { probabilities } = await session.run(feeds);
  await session.release();
  const [rows, width] = probabilities.dims, classes = [];
  for (let i = 0; i < rows; i++) {
    const p = probabilities.data.subarray(i * width, (i + 1) * width);
    classes.push(p.indexOf(Math.max(...p)));
  }
  const ids = feeds.graph_ids?.data, count = ids?.length ?? rows;
  draw(by("graph"), {
    classes: Array.from({ length: count }, (_, v) => classes[ids ? Number(ids[v]) : v]),
    edges: edgesOf(feeds, count), names: manifest.classes,
  });
  return rows;
}

// edgesOf lists [source, target, weight], each pair once.
function edgesOf(feeds, count) {
  const list = [];
  if (feeds.adjacency) {
    for (let i = 0; i < count; i++) for (let j = 0; j < i; j++) if (feeds.adjacency.data[i * count + j]) list.push([j, i, feeds.adjacency.data[i * count + j]]);
  } else if (feeds.edge_index) {
    const index = feeds.edge_index.data, e = index.length / 2;
    for (let k = 0; k < e; k++) if (index[k] < index[e + k]) list.push([Number(index[k]), Number(index[e + k]), feeds.edge_weight?.data[k] ?? 1]);
  }
  return list;
}

async function guarded(work) {
  by("status").classList.remove("fail");
  try {
    by("status").textContent = await work(by("export").value);
  } catch (error) {
    by("status").classList.add("fail");
    by("status").textContent = error.message ?? error;
  }
}
by("classify").onclick = () => guarded(async (dist) => `${await classify(dist)} rows classified`);
by("check").onclick = () => guarded(async (dist) => (await check(dist), "checked"));

if (headless) {
  await say(`runtime onnxruntime-web ${version}`);
  for (const dist of names) await check(dist);
  try { // the drawing too must work
    await classify(names[0]);
    const drawn = by("graph").getContext("2d").getImageData(0, 0, 900, 600).data.some((v) => v > 0);
    if (!drawn) throw new Error("nothing was drawn");
  } catch (error) {
    await say(`${names[0]} drawing FAIL ${error.message ?? error}`);
  }
  await fetch("/line", { method: "POST", body: "end" });
}
