"""The step of ecl.py (blurred views) with its noise in the row space of the first weight, still in
PyTorch: what the algebra alone brings. On a CPU sparse products are SciPy's, which are faster than PyTorch's.
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
p.add_argument("--anchors", type=int, default=512)
p.add_argument("--struct", type=int, default=0)
o = p.parse_args()
device(o)
H, K, tau, alpha, beta, sigma, step_size, step_noise = 128, 3, 0.1, 0.1, 0.01, 0.03, 0.05, 0.01


class SparseProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, s, h):
        ctx.s = s
        return torch.from_numpy(np.asarray(s.m @ h.detach().numpy()))

    @staticmethod
    def backward(ctx, g):
        return None, torch.from_numpy(np.asarray(ctx.s.transposed @ g.contiguous().numpy()))


class DeviceProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, s, h):
        ctx.s = s
        return s.m @ h

    @staticmethod
    def backward(ctx, g):
        return None, ctx.s.transposed @ g


class Sparse:
    def __init__(self, m):
        self.m = m.tocsr().astype(np.float32)
        self.transposed = self.m.T.tocsr()
        if o.device != "cpu":
            self.m, self.transposed = (torch.sparse_csr_tensor(torch.tensor(s.indptr), torch.tensor(s.indices), torch.tensor(s.data), s.shape) for s in (self.m, self.transposed))

    def __matmul__(self, h):
        return (SparseProduct if o.device == "cpu" else DeviceProduct).apply(self, h)


class RowNoise(torch.autograd.Function):
    """Noise Y·R on x·W for noise Y·(WR^-1)^T on x: the value, and its gradient to W."""

    @staticmethod
    def forward(ctx, Y, R, inverse, *W):
        ctx.save_for_backward(Y, inverse, *W)
        return Y @ R

    @staticmethod
    def backward(ctx, grad):
        Y, inverse, *W = ctx.saved_tensors
        q = inverse @ (Y.t() @ grad)
        return (None, None, None, *[w @ q for w in W])


d = Data(o.data)
n = d.n
X, A = Sparse(d.rows("l2")), Sparse(d.normalised())
Xs = F.normalize(torch.randn(n, o.struct)) if o.struct else None
weight = lambda *shape: torch.nn.Parameter(torch.nn.init.xavier_uniform_(torch.empty(*shape)))
first = [weight(d.features, H)] + ([weight(o.struct, H)] if o.struct else [])
W = [weight(H, H) for _ in range(4)]
b = [torch.nn.Parameter(torch.zeros(H)) for _ in range(5)]
optimizer = torch.optim.Adam([*first, *W, *b], lr=1e-3)


def encode(h, anchors):
    h = A @ h + b[0]
    h = A @ (F.elu(h) @ W[0]) + b[1]
    h = (A @ (F.elu(h) @ W[1]) + b[2])[anchors]
    return F.normalize(F.elu(F.elu(h) @ W[2] + b[3]) @ W[3] + b[4])


distance = lambda p, q: (2 - 2 * p @ q.t()) / tau


def step():
    anchors = torch.randperm(n)[: o.anchors] if 0 < o.anchors < n else torch.arange(n)
    eye = torch.eye(len(anchors), dtype=torch.bool)
    xw = X @ first[0]
    if o.struct:
        xw = xw + Xs @ first[1]
    with torch.no_grad():
        R = torch.linalg.cholesky(sum(w.t() @ w for w in first) + 1e-6 * torch.eye(H)).t().contiguous()
        inverse = torch.linalg.inv(R)
    noisy = lambda Y: xw + RowNoise.apply(Y, R, inverse, *first)
    z1, z2 = encode(noisy(sigma * torch.randn(n, H)), anchors), encode(noisy(sigma * torch.randn(n, H)), anchors)
    D = distance(z1, z2)
    within = lambda z: (-distance(z, z)).masked_fill(eye, -1e9)
    n1 = torch.cat([-D, within(z1)], 1).logsumexp(1)
    n2 = torch.cat([-D.t(), within(z2)], 1).logsumexp(1)
    loss = (D.diag() + 0.5 * (n1 + n2)).mean() + beta * (D * tau)[~eye].pow(2).mean()
    Y, fixed, still = sigma * torch.randn(n, H), z2.detach(), xw.detach()
    for _ in range(K):
        h = (still + Y @ R).requires_grad_(True)
        energy = -(-distance(encode(h, anchors), fixed)).logsumexp(1).sum()
        slope = torch.autograd.grad(energy, h)[0]
        Y = Y - step_size / 2 * slope @ R.t() + step_noise * torch.randn(n, H)
    negative = -(-distance(encode(noisy(Y), anchors), z2)).logsumexp(1)
    loss = loss + alpha * (-(-D).logsumexp(1) - negative).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


report(ms=median(times(step, o.rounds)))
