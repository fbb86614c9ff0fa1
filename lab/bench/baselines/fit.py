"""One step of the classifier of gsrc's default recipe as an expert writes it in PyTorch: features and
adjacency in CSR, random propagation (Feng et al. 2020, GRAND) over several samples of the candidate
edges, cross-entropy and the consistency of the samples' predictions, Adam.
"""
import argparse, warnings
import numpy as np, torch, torch.nn.functional as F
from common import Data, device, median, report, times

warnings.filterwarnings("ignore")
p = argparse.ArgumentParser()
p.add_argument("data")
p.add_argument("--threads", type=int, default=2)
p.add_argument("--device", default="cpu")
p.add_argument("--rounds", type=int, default=15)
p.add_argument("--norm", default="l1", choices=["l1", "l2"])
for name, value in dict(hidden=32, order=8, samples=4).items():
    p.add_argument("--" + name, type=int, default=value)
for name, value in dict(nodes=0.5, input=0.5, dropout=0.5, temperature=0.5, sharpen=0.5, consistency=1.0, probability=0.7).items():
    p.add_argument("--" + name, type=float, default=value)
o = p.parse_args()
device(o)
d = Data(o.data)
n = d.n
csr = lambda ptr, col, val, shape: torch.sparse_csr_tensor(ptr, col, val, shape)
x = d.rows(o.norm).tocsr()
x_ptr, x_col, x_val = (torch.tensor(v) for v in (x.indptr.astype(np.int64), x.indices.astype(np.int64), x.data.astype(np.float32)))
train, labels = torch.tensor(d.train), torch.tensor(d.labels)

# Candidate edges with self-loops behind them in CSR order, and the number of each entry's undirected edge.
a = d.A.tocoo()
pairs, edge_of = np.unique(np.minimum(a.row, a.col).astype(np.int64) * n + np.maximum(a.row, a.col), return_inverse=True)
loops = np.arange(n)
order = np.lexsort((np.r_[a.col, loops], np.r_[a.row, loops]))
row, col = (torch.tensor(np.r_[v, loops][order].astype(np.int64)) for v in (a.row, a.col))
ptr = torch.tensor(np.r_[0, np.cumsum(np.bincount(row.cpu().numpy(), minlength=n))].astype(np.int64))
edge_of = torch.tensor(np.r_[edge_of, np.full(n, len(pairs))][order])
probability = torch.full((len(pairs),), o.probability)

weight = lambda i, out: torch.nn.Parameter(torch.nn.init.xavier_uniform_(torch.empty(i, out)))
W, V = weight(d.features, o.hidden), weight(o.hidden, d.classes)
b, c = torch.nn.Parameter(torch.zeros(o.hidden)), torch.nn.Parameter(torch.zeros(d.classes))
optimizer = torch.optim.Adam([{"params": [W], "weight_decay": 5e-4}, {"params": [V, b, c]}], lr=0.01)


def sampled():
    """A graph of the relaxed Bernoulli distribution, normalised."""
    u = torch.rand(len(pairs)).clamp(1e-6, 1 - 1e-6)
    soft = torch.sigmoid((torch.logit(probability) + torch.logit(u)) / o.temperature)
    keep = torch.cat([(soft > 0.5).float(), torch.ones(1)])[edge_of]
    scale = torch.zeros(n).index_add_(0, row, keep).rsqrt()
    return csr(ptr, col, keep * scale[row] * scale[col], (n, n))


def logits():
    kept = (torch.rand(n, 1) >= o.nodes).float() / (1 - o.nodes)
    h = (csr(x_ptr, x_col, F.dropout(x_val, o.input), (n, d.features)) @ W) * kept
    graph, total = sampled(), h
    for _ in range(o.order):
        h = graph @ h
        total = total + h
    h = F.dropout((total / (o.order + 1) + b).relu(), o.dropout)
    return h @ V + c


def step():
    optimizer.zero_grad()
    out = [logits() for _ in range(o.samples)]
    loss = sum(F.cross_entropy(l[train], labels) for l in out) / o.samples
    if o.samples > 1:
        ps = [l.softmax(1) for l in out]
        mean = (sum(ps) / o.samples).detach() ** (1 / o.sharpen)
        target = mean / mean.sum(1, keepdim=True)
        loss = loss + o.consistency * sum((q - target).pow(2).sum(1).mean() for q in ps) / o.samples
    loss.backward()
    optimizer.step()


report(ms=median(times(step, o.rounds)))
