"""A two-layer GCN as PyTorch Geometric exports it, against gsrc's exports of the same weights, all in onnxruntime,
in one process, in turn. The folder holds what lab/bench/exports.go writes."""
import argparse, json, os, tempfile, time, warnings
import numpy as np, onnx, onnxruntime, torch
from torch_geometric.nn import GCNConv
from common import Data

warnings.filterwarnings("ignore")
p = argparse.ArgumentParser()
p.add_argument("data")
p.add_argument("--threads", type=int, default=2)
p.add_argument("--hidden", type=int, default=128)
p.add_argument("--seconds", type=float, default=20)
p.add_argument("--profile", default="", help="write onnxruntime's profile of this file of the folder to the working directory")
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

a = d.A.tocoo()  # rows are targets
edge_index = np.stack([a.col, a.row]).astype(np.int64)
order = np.random.default_rng(0).permutation(edge_index.shape[1])
edge_index = np.ascontiguousarray(edge_index[:, order])  # as a user has them: in any order
graph = {"x": np.ascontiguousarray(d.rows("l1").toarray(), np.float32), "edge_index": edge_index}
inputs = (torch.tensor(graph["x"]), torch.tensor(edge_index))


def options():
    s = onnxruntime.SessionOptions()
    s.intra_op_num_threads = o.threads
    return s


def open_file(path):
    session = onnxruntime.InferenceSession(path, options(), providers=["CPUExecutionProvider"])
    feed = {}
    for i in session.get_inputs():
        file = f"{os.path.splitext(path)[0]}.{i.name}.npy"
        if os.path.exists(file):
            array = np.load(file)
            feed[i.name] = array.reshape([n if isinstance(n, int) else -1 for n in i.shape])
        else:
            feed[i.name] = graph[i.name]
    return lambda: session.run(["logits"], feed)[0]


with torch.no_grad():
    want = net(*inputs).numpy()
if o.profile:
    s = options()
    s.enable_profiling = True
    s.profile_file_prefix = os.path.splitext(os.path.basename(o.profile))[0]
    session = onnxruntime.InferenceSession(os.path.join(o.data, o.profile), s)
    for _ in range(10):
        session.run(["logits"], {i.name: graph[i.name] for i in session.get_inputs()})
    print(session.end_profiling())
    raise SystemExit
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "pyg.onnx")
    torch.onnx.export(net, inputs, path, opset_version=17, dynamo=False, input_names=["x", "edge_index"], output_names=["logits"],
                      dynamic_axes={"x": {0: "n"}, "edge_index": {1: "e"}})
    with open(os.path.join(o.data, "files.json")) as f:
        files = [("PyG", path)] + [(f["name"], os.path.join(o.data, f["file"])) for f in json.load(f)]
    runs = [(name, open_file(path), len(onnx.load(path).graph.node)) for name, path in files]
results = [{"name": name, "nodes": nodes, "difference": float(np.abs(run() - want).max()), "ms": []} for name, run, nodes in runs]
start, rounds = time.perf_counter(), 0
while rounds < 2 or time.perf_counter() - start < o.seconds and rounds < 100:
    turns = list(zip(runs, results))
    for (_, run, _), r in turns if rounds % 2 == 0 else reversed(turns):
        begin = time.perf_counter()
        run()
        r["ms"].append(1e3 * (time.perf_counter() - begin))
    rounds += 1
for r in results:
    r["median_ms"], r["ms"] = float(np.median(r["ms"])), min(r["ms"])
for r in results:
    r["ratio"] = results[0]["ms"] / r["ms"]
print(json.dumps({"rounds": rounds, "files": results}))
