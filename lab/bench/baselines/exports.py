"""A two-layer GCN as PyTorch Geometric exports it, against gsrc's exports of the same weights, all in onnxruntime,
in turn, each in a process of its own (exports_session.py). The folder holds what tools/bench-exports.go writes."""
import argparse, json, os, subprocess, sys, tempfile, time, warnings
import numpy as np, onnx, torch
from torch_geometric.nn import GCNConv
from common import Data

TURN = 0.3  # seconds of calls
LARGE = 1 << 20  # edges from which one process at a time lives, without onnxruntime's arena: PyG's export takes 13 GB and more

warnings.filterwarnings("ignore")
p = argparse.ArgumentParser()
p.add_argument("data")
p.add_argument("--threads", type=int, default=2)
p.add_argument("--hidden", type=int, default=128)
p.add_argument("--seconds", type=float, default=20)
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
large = edge_index.shape[1] >= LARGE
inputs = (torch.tensor(d.rows("l1").toarray(), dtype=torch.float32), torch.tensor(edge_index))


class Session:
    """A file, and the process that runs it."""

    def __init__(self, name, path, want):
        self.name, self.path, self.want, self.ms, self.cpu_ms, self.process = name, path, want, [], [], None

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name}: the program that runs {self.path} ended with status {self.process.wait()}")
        return json.loads(line)

    def start(self):
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "exports_session.py")
        command = [sys.executable, program, o.data, self.path, "--threads", str(o.threads), "--want", self.want]
        self.process = subprocess.Popen(command + ["--no-arena"] * large, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.difference = self.answer()["difference"]

    def turn(self):
        if not self.process:
            self.start()
        self.process.stdin.write(f"{TURN}\n")
        self.process.stdin.flush()
        times = self.answer()
        self.ms += times["ms"]
        self.cpu_ms += times["cpu_ms"]
        if large:
            self.end()

    def end(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()
            self.process = None

    def result(self):
        return {"name": self.name, "nodes": len(onnx.load(self.path).graph.node), "bytes": os.path.getsize(self.path), "difference": self.difference,
                "median_ms": float(np.median(self.ms)), "ms": min(self.ms), "cpu_ms": min(self.cpu_ms)}


with open(os.path.join(o.data, "files.json")) as f:
    exported = json.load(f)
with tempfile.TemporaryDirectory() as folder:
    path, want = os.path.join(folder, "pyg.onnx"), os.path.join(folder, "logits.npy")
    with torch.no_grad():
        np.save(want, net(*inputs).numpy())
    torch.onnx.export(net, inputs, path, opset_version=17, dynamo=False, input_names=["x", "edge_index"], output_names=["logits"],
                      dynamic_axes={"x": {0: "n"}, "edge_index": {1: "e"}})
    sessions = [Session("PyG", path, want)] + [Session(f["name"], os.path.join(o.data, f["file"]), want) for f in exported]
    start, rounds = time.perf_counter(), 0
    while rounds < 2 or time.perf_counter() - start < o.seconds:
        for s in sessions if rounds % 2 == 0 else reversed(sessions):
            s.turn()
        rounds += 1
    results = [s.result() for s in sessions]
    for s in sessions:
        s.end()
for r in results:
    r["ratio"], r["cpu_ratio"] = results[0]["ms"] / r["ms"], results[0]["cpu_ms"] / r["cpu_ms"]
print(json.dumps({"rounds": rounds, "files": results}))
