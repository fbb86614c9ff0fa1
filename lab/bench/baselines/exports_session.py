"""An exported GCN in onnxruntime, in a process of its own: threads of another InferenceSession, which go on waiting actively for
work after a call, would take processors from this one. For each line on its standard input, a number of seconds, it makes
calls that long and prints their times; a short call before them does not count. The folder holds what tools/bench-exports.go writes."""
import argparse, json, os, sys, time
import numpy as np, onnxruntime, scipy.sparse as sp
from common import Data

p = argparse.ArgumentParser()
p.add_argument("data")
p.add_argument("file", help="ONNX file, one of the folder's or of the same inputs as PyG's")
p.add_argument("--threads", type=int, default=2)
p.add_argument("--want", default="", help="logits as .npy; the largest difference is printed first")
p.add_argument("--no-arena", action="store_true", help="take memory anew in every call, half as much")
p.add_argument("--profile", action="store_true", help="write onnxruntime's profile of ten calls to the working directory, and stop")
o = p.parse_args()

with open(os.path.join(o.data, "files.json")) as f:
    shapes = next((f["inputs"] for f in json.load(f) if f["file"] == os.path.basename(o.file)), {})
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = o.threads
options.enable_cpu_mem_arena = not o.no_arena
options.enable_profiling = o.profile
session = onnxruntime.InferenceSession(o.file, options, providers=["CPUExecutionProvider"])
rows = sp.csr_matrix(Data(o.data).rows("l1"), dtype=np.float32)
given = {"x": lambda: np.ascontiguousarray(rows.toarray()), "x_indptr": lambda: rows.indptr.astype(np.int64),
         "x_indices": lambda: rows.indices.astype(np.int64), "x_values": lambda: rows.data,
         "edge_index": lambda: np.load(os.path.join(o.data, "edge_index.npy")).reshape(2, -1)}
feed = {i.name: given[i.name]() if i.name in given else np.load(f"{o.file}.{i.name}.npy").reshape(shapes[i.name]) for i in session.get_inputs()}


def run():
    return session.run(["logits"], feed)[0]


if o.profile:
    for _ in range(10):
        run()
    print(session.end_profiling())
    raise SystemExit
start = time.perf_counter()
logits = run()
last = time.perf_counter() - start
print(json.dumps({"difference": float(np.abs(logits - np.load(o.want)).max()) if o.want else 0}), flush=True)
for line in sys.stdin:
    end = float(line)
    if last < end:
        run()
    ms, cpu_ms, begun = [], [], time.perf_counter()
    while not ms or time.perf_counter() - begun < end:
        start, worked = time.perf_counter(), time.process_time()
        run()
        last = time.perf_counter() - start
        ms.append(1e3 * last)
        cpu_ms.append(1e3 * (time.process_time() - worked))
    print(json.dumps({"ms": ms, "cpu_ms": cpu_ms}), flush=True)
