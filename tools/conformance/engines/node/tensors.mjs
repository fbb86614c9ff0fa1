// Test data of gsrc exports, in Node and in browsers alike.

// readTensor decodes an ONNX tensor file (input_0.pb and so on): dims (field 1), data_type
// (2: 1 is float32, 7 is int64), name (8) and raw_data (9), which is all that gsrc writes.
export function readTensor(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const varint = () => {
    let value = 0n, shift = 0n;
    for (;;) {
      const b = view.getUint8(at++);
      value |= BigInt(b & 127) << shift;
      if (b < 128) return Number(BigInt.asIntN(64, value));
      shift += 7n;
    }
  };
  const tensor = { name: "", dims: [], type: "", data: null };
  let raw = new Uint8Array(), kind = 0;
  while (at < bytes.byteLength) {
    const key = varint(), field = key >> 3;
    if ((key & 7) === 0) {
      const value = varint();
      if (field === 1) tensor.dims.push(value);
      if (field === 2) kind = value;
      continue;
    }
    if ((key & 7) !== 2) throw new Error(`field ${field} is not one of a tensor file`);
    const size = varint(), end = at + size;
    if (field === 1) while (at < end) tensor.dims.push(varint()); // packed
    else if (field === 8) tensor.name = new TextDecoder().decode(bytes.subarray(at, end));
    else if (field === 9) raw = bytes.subarray(at, end);
    at = end;
  }
  const buffer = Uint8Array.from(raw).buffer; // aligned
  if (kind === 1) [tensor.type, tensor.data] = ["float32", new Float32Array(buffer)];
  else if (kind === 7) [tensor.type, tensor.data] = ["int64", new BigInt64Array(buffer)];
  else throw new Error(`element type ${kind} is not one that gsrc writes`);
  return tensor;
}

// checkEdges refuses edges to nodes that there are not. Copy this: not every runtime looks at
// what a Gather reads.
export function checkEdges(edgeIndex, numNodes) {
  if (edgeIndex.type !== "int64" || edgeIndex.dims.length !== 2 || edgeIndex.dims[0] !== 2) {
    throw new TypeError(`edge_index is ${edgeIndex.type} of shape [${edgeIndex.dims}], want int64 [2, E]`);
  }
  const n = BigInt(numNodes), columns = edgeIndex.dims[1];
  edgeIndex.data.forEach((v, i) => {
    if (v < 0n || v >= n) {
      throw new RangeError(`edge_index[${Math.floor(i / columns)}, ${i % columns}] is ${v}, outside the nodes 0 to ${n - 1n}`);
    }
  });
}

// compare returns the largest difference of a runtime's output from what is expected, or throws
// where it is above the bound, within.abs + within.rel times the largest expected value. Integers are equal.
export function compare(name, got, want, within) {
  if (String(got.dims) !== String(want.dims)) throw new Error(`${name} has the shape [${got.dims}], want [${want.dims}]`);
  if (want.type === "int64") {
    const i = want.data.findIndex((v, i) => got.data[i] !== v);
    if (i >= 0) throw new Error(`${name} is ${got.data[i]} at position ${i}, want ${want.data[i]}`);
    return 0;
  }
  let error = 0, largest = 0;
  for (let i = 0; i < want.data.length; i++) {
    const d = Math.abs(got.data[i] - want.data[i]);
    if (!(d <= error)) error = d; // NaN too
    largest = Math.max(largest, Math.abs(want.data[i]));
  }
  const bound = within.abs + within.rel * largest;
  if (!(error <= bound)) throw new Error(`${name} is off by ${error.toPrecision(3)}, the bound is ${bound.toPrecision(3)}`);
  return error;
}

// checkModel runs every test case of a model and returns the line to print after its name. load
// gives the bytes of a file of the export; ort is onnxruntime-node or onnxruntime-web.
export async function checkModel(ort, info, load) {
  const session = await ort.InferenceSession.create(await load(info.file), { logSeverityLevel: 4 });
  const tensors = async (folder, kind, list) => {
    const out = {};
    for (let i = 0; i < list.length; i++) {
      const t = readTensor(await load(`${folder}/${kind}_${i}.pb`));
      out[t.name] = t;
    }
    return out;
  };
  const within = info.tolerance ?? { abs: 1e-5, rel: 1e-4 }; // wider where the model computes in 8 bits
  let max = 0, graphs = 0, refused = 0, byFile = 0;
  for (const test of info.test_cases ?? [{ name: "sub-graph", data: info.test_data }]) {
    try {
      const inputs = await tensors(test.data, "input", info.inputs), feeds = {};
      for (const t of Object.values(inputs)) feeds[t.name] = new ort.Tensor(t.type, t.data, t.dims);
      const nodes = inputs.x ? inputs.x.dims[0] : inputs.x_indptr?.dims[0] - 1;
      if (test.refused) {
        let passed = "";
        try { checkEdges(inputs.edge_index, nodes); passed = "the check of edges"; } catch { refused++; }
        try { await session.run(feeds); passed = "the file"; } catch { byFile++; }
        if (passed) throw new Error(`${passed} let the faulty graph pass`);
        continue;
      }
      if (inputs.edge_index) checkEdges(inputs.edge_index, nodes);
      const outputs = await session.run(feeds);
      const want = await tensors(test.data, "output", info.outputs);
      for (const name in want) max = Math.max(max, compare(name, outputs[name], want[name], within));
      graphs++;
    } catch (error) {
      throw new Error(`${test.name}: ${error.message ?? error}`);
    }
  }
  await session.release();
  return `ok max_abs=${max.toExponential(2)} graphs=${graphs} refused=${refused} by_file=${byFile}`;
}
