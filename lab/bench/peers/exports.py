"""A two-layer GCN as PyTorch Geometric exports it, against gsrc's exports of the same weights, all in onnxruntime,
in one process, in turn. The folder holds what lab/bench/exports.go writes."""
import argparse, json, os, tempfile, time, warnings
import numpy as np, onnx, onnxruntime, scipy.sparse as sp, torch
from torch_geometric.nn import GCNConv
from common import Data

warnings.filterwarnings("ignore")
p = argparse.ArgumentParser()
p.add_argument("data")
p.add_argument("--threads", type=int, default=2)
p.add_argument("--hidden", type=int, default=128)
p.add_argument("--seconds", type=float, default=20)
p.add_argument("--profile", default="", help="write onnxruntime's profile of the export of this name to the working directory, and stop")
o = p.parse_args()
torch.set_num_threads(o.threads)
d = Data(o.data)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = GCNConv(d.features, o.hidden), GCNConv(o.hidden, d.classes)

    def forward(self, x, edge_index):
        return self.b(self.a(x, edge_index).relu(), edge_index)


def param(i, *shape):
    return torch.tensor(np.load(os.path.join(o.data, f"param{i}.npy")).reshape(shape))


net = Net().eval()
with torch.no_grad():
    net.a.lin.weight.copy_(param(0, d.features, o.hidden).T)
    net.a.bias.copy_(param(1, o.hidden))
    net.b.lin.weight.copy_(param(2, o.hidden, d.classes).T)
    net.b.bias.copy_(param(3, d.classes))

edge_index = np.load(os.path.join(o.data, "edge_index.npy")).reshape(2, -1)
rows = sp.csr_matrix(d.rows("l1"), dtype=np.float32)
graph = {"x": np.ascontiguousarray(rows.toarray()), "edge_index": edge_index,
         "x_indptr": rows.indptr.astype(np.int64), "x_indices": rows.indices.astype(np.int64), "x_values": rows.data}
inputs = (torch.tensor(graph["x"]), torch.tensor(edge_index))


def options():
    s = onnxruntime.SessionOptions()
    s.intra_op_num_threads = o.threads
    return s


def feed_of(session, path, shapes):
    feed = graph | {name: np.load(f"{path}.{name}.npy").reshape(shape) for name, shape in shapes.items()}
    return {i.name: feed[i.name] for i in session.get_inputs()}


def open_file(path, shapes):
    session = onnxruntime.InferenceSession(path, options(), providers=["CPUExecutionProvider"])
    feed = feed_of(session, path, shapes)
    return lambda: session.run(["logits"], feed)[0]


with torch.no_grad():
    want = net(*inputs).numpy()
with open(os.path.join(o.data, "files.json")) as f:
    exported = json.load(f)
if o.profile:
    s = options()
    s.enable_profiling = True
    s.profile_file_prefix = o.profile
    file = next(f for f in exported if f["name"] == o.profile)
    path = os.path.join(o.data, file["file"])
    session = onnxruntime.InferenceSession(path, s)
    for _ in range(10):
        session.run(["logits"], feed_of(session, path, file["inputs"]))
    print(session.end_profiling())
    raise SystemExit
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "pyg.onnx")
    torch.onnx.export(net, inputs, path, opset_version=17, dynamo=False, input_names=["x", "edge_index"], output_names=["logits"],
                      dynamic_axes={"x": {0: "n"}, "edge_index": {1: "e"}})
    files = [("PyG", path, {})] + [(f["name"], os.path.join(o.data, f["file"]), f["inputs"]) for f in exported]
    runs = [(name, open_file(path, shapes), len(onnx.load(path).graph.node), os.path.getsize(path)) for name, path, shapes in files]
results = [{"name": name, "nodes": nodes, "bytes": size, "difference": float(np.abs(run() - want).max()), "ms": [], "cpu_ms": []} for name, run, nodes, size in runs]
start, rounds = time.perf_counter(), 0
while rounds < 2 or time.perf_counter() - start < o.seconds and rounds < 100:
    turns = list(zip(runs, results))
    for (_, run, _, _), r in turns if rounds % 2 == 0 else reversed(turns):
        begin, worked = time.perf_counter(), time.process_time()
        run()
        r["ms"].append(1e3 * (time.perf_counter() - begin))
        r["cpu_ms"].append(1e3 * (time.process_time() - worked))
    rounds += 1
for r in results:
    r["median_ms"], r["ms"], r["cpu_ms"] = float(np.median(r["ms"])), min(r["ms"]), min(r["cpu_ms"])
for r in results:
    r["ratio"], r["cpu_ratio"] = results[0]["ms"] / r["ms"], results[0]["cpu_ms"] / r["cpu_ms"]
print(json.dumps({"rounds": rounds, "files": results}))
