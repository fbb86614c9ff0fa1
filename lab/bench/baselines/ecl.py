"""One ECL-GSR pre-training step as a PyTorch user writes it from the paper: X dense, noise dense.

Two views, K Langevin steps from a noisy view, a GCN encoder with a projector, the losses of
Eq 13, 15 and 17, Adam. --mask and --drop make the views of gsrc's default recipe (masked columns,
dropped edges); --blur those of the paper.
"""
import argparse, warnings
import numpy as np, torch, torch.nn.functional as F
from common import Data, device, median, report, times

warnings.filterwarnings("ignore")
p = argparse.ArgumentParser()
p.add_argument("data")
p.add_argument("--threads", type=int, default=2)
p.add_argument("--device", default="cpu")
p.add_argument("--rounds", type=int, default=5)
p.add_argument("--anchors", type=int, default=512, help="samples; 0 takes all nodes")
p.add_argument("--struct", type=int, default=0, help="columns of X^s")
p.add_argument("--conv", default="csr", choices=["csr", "pyg"])
p.add_argument("--layers", type=int, default=3)
p.add_argument("--tau", type=float, default=0.1)
p.add_argument("--clip", type=float, default=0.0, help="largest row norm of a Langevin step's gradient")
p.add_argument("--blur", type=float, default=0.0)
p.add_argument("--mask", type=float, default=0.0)
p.add_argument("--drop", type=float, default=0.0)
o = p.parse_args()
device(o)
hidden, K, alpha, beta, step_size, step_noise, start_noise = 128, 3, 0.1, 0.01, 0.05, 0.01, 0.03

d = Data(o.data)
n = d.n
x = torch.tensor(d.rows("l2").toarray())
if o.struct:
    x = torch.cat([x, F.normalize(torch.randn(n, o.struct))], 1)
a = d.normalised().tocoo()
edge_index = torch.tensor(np.stack([a.col, a.row]).astype(np.int64))
full = torch.tensor(a.data)


def csr(weight):
    m = a.tocsr()
    return torch.sparse_csr_tensor(torch.tensor(m.indptr.astype(np.int64)), torch.tensor(m.indices.astype(np.int64)), weight, (n, n))


# For dropped edges: the raw edges with self-loops behind them, and the number of each entry's
# undirected edge.
raw = d.A.tocoo()
low, high = np.minimum(raw.row, raw.col).astype(np.int64), np.maximum(raw.row, raw.col).astype(np.int64)
pairs, edge_of = np.unique(low * n + high, return_inverse=True)
loops = np.arange(n)
order = np.lexsort((np.r_[raw.col, loops], np.r_[raw.row, loops]))  # as CSR has them
row, col = torch.tensor(np.r_[raw.row, loops][order].astype(np.int64)), torch.tensor(np.r_[raw.col, loops][order].astype(np.int64))
edge_of = torch.tensor(np.r_[edge_of, np.full(n, len(pairs))][order])


def dropped():
    """Edge weights of a view: each undirected edge kept or not, self-loops kept, normalised anew."""
    keep = torch.cat([(torch.rand(len(pairs)) >= o.drop).float(), torch.ones(1)])[edge_of]
    degree = torch.zeros(n).index_add_(0, row, keep).rsqrt()
    return keep * degree[row] * degree[col]


if o.conv == "pyg":
    from torch_geometric.nn import GCNConv

    layer = lambda i, out: GCNConv(i, out, normalize=False)
    graph = lambda weight: (torch.stack([col, row]) if o.drop else edge_index, weight)
    propagate = lambda l, h, g: l(h, *g)
else:
    layer = torch.nn.Linear
    graph = csr
    propagate = lambda l, h, g: g @ (h @ l.weight.t()) + l.bias
whole = graph(full)


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        width = [x.shape[1]] + [hidden] * o.layers
        self.layers = torch.nn.ModuleList([layer(i, out) for i, out in zip(width, width[1:])])
        self.projector = torch.nn.Sequential(torch.nn.ELU(), torch.nn.Linear(hidden, hidden), torch.nn.ELU(), torch.nn.Linear(hidden, hidden))

    def forward(self, h, g, anchors):
        for i, l in enumerate(self.layers):
            h = propagate(l, h if i == 0 else F.elu(h), g)
        return F.normalize(self.projector(h[anchors]))


model = Encoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def view():
    v = x
    if o.mask:
        v = v * (torch.rand(x.shape[1]) >= o.mask)
    if o.blur:
        v = v + o.blur * torch.randn_like(v)
    return v, graph(dropped()) if o.drop else whole


distance = lambda p, q: (2 - 2 * p @ q.t()) / o.tau


def loss(anchors):
    eye = torch.eye(len(anchors), dtype=torch.bool)
    (v1, g1), (v2, g2) = view(), view()
    z1, z2 = model(v1, g1, anchors), model(v2, g2, anchors)
    D = distance(z1, z2)
    within = lambda z: (-distance(z, z)).masked_fill(eye, -1e9)
    n1 = torch.cat([-D, within(z1)], 1).logsumexp(1)
    n2 = torch.cat([-D.t(), within(z2)], 1).logsumexp(1)
    total = (D.diag() + 0.5 * (n1 + n2)).mean() + beta * (D * o.tau)[~eye].pow(2).mean()
    fixed = z2.detach()
    v = (x if o.blur else v1) + start_noise * torch.randn_like(x)
    for _ in range(K):
        v.requires_grad_(True)
        energy = -(-distance(model(v, g1, anchors), fixed)).logsumexp(1).sum()
        slope = torch.autograd.grad(energy, v)[0]
        if o.clip:
            slope = slope * (o.clip / slope.norm(dim=1, keepdim=True).clamp(min=o.clip))
        v = (v - step_size / 2 * slope + step_noise * torch.randn_like(v)).detach()
    negative = -(-distance(model(v, g1, anchors), z2)).logsumexp(1)
    positive = -(-D).logsumexp(1)
    return total + alpha * (positive - negative).mean()


def step():
    anchors = torch.randperm(n)[: o.anchors] if 0 < o.anchors < n else torch.arange(n)
    optimizer.zero_grad()
    loss(anchors).backward()
    optimizer.step()


report(ms=median(times(step, o.rounds)))
