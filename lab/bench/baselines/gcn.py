"""200 epochs of the two-layer GCN, each with an evaluation pass. --impl pyg is PyTorch Geometric as its
documentation writes it; --impl sparse is what an expert writes: features and adjacency in CSR.
--inference times the forward pass instead, --step a training step.
"""
import argparse, warnings
import numpy as np, torch, torch.nn.functional as F
from common import Data, device, median, report, times

warnings.filterwarnings("ignore")
p = argparse.ArgumentParser()
p.add_argument("data")
p.add_argument("--threads", type=int, default=2)
p.add_argument("--device", default="cpu")
p.add_argument("--rounds", type=int, default=1)
p.add_argument("--impl", default="pyg", choices=["pyg", "sparse"])
p.add_argument("--hidden", type=int, default=16)
p.add_argument("--inference", action="store_true")
p.add_argument("--step", action="store_true")
o = p.parse_args()
device(o)
d = Data(o.data)
train, labels = torch.tensor(d.train), torch.tensor(d.labels)

if o.impl == "pyg":
    from torch_geometric.nn import GCNConv

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = GCNConv(d.features, o.hidden), GCNConv(o.hidden, d.classes)

        def forward(self, x, edge_index):
            h = F.dropout(x, 0.5, self.training)
            h = self.a(h, edge_index).relu()
            return self.b(F.dropout(h, 0.5, self.training), edge_index)

    a = d.A.tocoo()
    inputs = (torch.tensor(d.rows("l1").toarray()), torch.tensor(np.stack([a.col, a.row]).astype(np.int64)))
else:
    csr = lambda m: torch.sparse_csr_tensor(torch.tensor(m.indptr.astype(np.int64)), torch.tensor(m.indices.astype(np.int64)), torch.tensor(m.data.astype(np.float32)), m.shape)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            weight = lambda i, out: torch.nn.Parameter(torch.nn.init.xavier_uniform_(torch.empty(i, out)))
            self.W, self.V = weight(d.features, o.hidden), weight(o.hidden, d.classes)
            self.b, self.c = torch.nn.Parameter(torch.zeros(o.hidden)), torch.nn.Parameter(torch.zeros(d.classes))

        def forward(self, x, adjacency):
            x = torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), F.dropout(x.values(), 0.5, self.training), x.shape)
            h = (adjacency @ (x @ self.W) + self.b).relu()
            return adjacency @ (F.dropout(h, 0.5, self.training) @ self.V) + self.c

    inputs = (csr(d.rows("l1").tocsr()), csr(d.normalised()))

model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)


def step():
    model.train()
    optimizer.zero_grad()
    F.cross_entropy(model(*inputs)[train], labels).backward()
    optimizer.step()


def epochs():
    for _ in range(200):
        step()
        model.eval()
        with torch.no_grad():
            model(*inputs)


def forward():
    with torch.no_grad():
        return model(*inputs)


if o.step:
    report(ms=median(times(step, 30)))
elif not o.inference:
    import time

    start = time.perf_counter()
    epochs()
    report(ms=1e3 * (time.perf_counter() - start))
else:
    model.eval()
    report(ms=median(times(forward, 30)))
