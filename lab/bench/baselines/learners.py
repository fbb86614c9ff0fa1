"""Epochs of structure learners in PyTorch as their papers, and the authors' programs, have them: every
pair of nodes is compared, and the learned graph is a dense matrix. Settings are gsrc's on Cora.
"""
import argparse, time, warnings
import numpy as np, torch, torch.nn.functional as F
from torch.nn import Parameter
from common import Data, report

warnings.filterwarnings("ignore")
p = argparse.ArgumentParser()
p.add_argument("data")
p.add_argument("model", choices=["grcn", "idgl", "sublime", "prognn"])
p.add_argument("--threads", type=int, default=2)
p.add_argument("--rounds", type=int, default=10)
p.add_argument("--nuclear", type=float, default=0.0, help="prognn: weight of the nuclear norm, by a whole singular value decomposition")
o = p.parse_args()
torch.set_num_threads(o.threads)
torch.manual_seed(0)
d = Data(o.data)
n, D, C = d.n, d.features, d.classes
train, labels = torch.tensor(d.train), torch.tensor(d.labels)
X = torch.tensor(d.X.toarray(), dtype=torch.float32)
A = torch.tensor(d.A.toarray(), dtype=torch.float32)
I = torch.eye(n)
weight = lambda *s: Parameter(torch.nn.init.xavier_uniform_(torch.empty(*s)))
bias = lambda k: Parameter(torch.zeros(k))


def sym(a):
    """D^-1/2 (A + I) D^-1/2."""
    a = a + I
    r = a.sum(1).clamp(min=1e-12).rsqrt()
    return r[:, None] * a * r[None, :]


def top(s, k):
    """The k largest of each row."""
    value, at = s.topk(min(k, n), dim=1)
    return torch.zeros_like(s).scatter(1, at, value)


def network(width):
    """A graph convolutional network of two layers on a dense adjacency, and its parameters."""
    w, v, b, c = weight(D, width), weight(width, C), bias(width), bias(C)

    def run(x, a, training, first=0.0):
        h = (a @ (F.dropout(x, first, training) @ w) + b).relu()
        return a @ (F.dropout(h, 0.5, training) @ v) + c

    return run, [w, v, b, c]


def grcn():
    """Yu et al. 2020: the 100 nearest by a network of diagonal weights, both ways, are added to the graph."""
    scales = [Parameter(torch.ones(D)) for _ in range(2)]
    run, params = network(32)
    a0 = sym(A).to_sparse_csr()
    optimizer = torch.optim.Adam([{"params": params, "weight_decay": 5e-3, "lr": 5e-3}, {"params": scales, "lr": 1e-3}])

    def forward(training):
        h = (a0 @ (X * scales[0])).tanh()
        z = F.normalize(a0 @ (h * scales[1]))
        s = top(z @ z.t(), 100)
        return run(X, sym(A + (s + s.t()) / 2), training)

    def epoch():
        optimizer.zero_grad()
        F.cross_entropy(forward(True)[train], labels).backward()
        optimizer.step()
        with torch.no_grad():
            forward(False)

    return epoch


def idgl():
    """Chen et al. 2020: similarities by weighted cosines, graph and embedding in turn until they settle."""
    heads, keep, update, smooth = 4, 0.8, 0.1, 0.2
    w, v, b, c = weight(D, 16), weight(16, C), bias(16), bias(C)
    metrics = [weight(heads, D), weight(heads, 16)]
    x = torch.tensor(d.rows("l1").toarray(), dtype=torch.float32)
    a0 = sym(A)
    optimizer = torch.optim.Adam([w, v, b, c] + metrics, lr=0.01, weight_decay=5e-4)

    def similar(h, metric):
        s = sum(z @ z.t() for z in (F.normalize(h * m) for m in metric)) / heads
        return s * (s > 0)

    def normal(s):
        return s / s.sum(1, keepdim=True).clamp(min=1e-12)

    def forward(training):
        h0 = F.dropout(x, 0.5, training) @ w

        def result(s, a, h):
            loss = F.cross_entropy((a @ (h @ v) + c)[train], labels) if training else 0
            laplacian = torch.diag(s.sum(1)) - s
            return loss + smooth * (x.t() @ (laplacian @ x)).trace() / n**2

        hidden = lambda a: F.dropout((a @ h0 + b).relu(), 0.5, training)
        s = similar(x, metrics[0])
        size = s.detach().pow(2).sum()
        first = keep * a0 + (1 - keep) * normal(s)
        h = hidden(first)
        loss, others, turns = result(s, first, h), 0, 0
        for _ in range(10):
            before, s = s, similar(h, metrics[1])
            a = update * (keep * a0 + (1 - keep) * normal(s)) + (1 - update) * first
            h = hidden(a)
            others, turns = others + result(s, a, h), turns + 1
            if (s - before).detach().pow(2).sum() <= 4e-5 * size:
                break
        return loss + others / turns

    def epoch():
        optimizer.zero_grad()
        forward(True).backward()
        optimizer.step()
        with torch.no_grad():
            forward(False)

    return epoch


def sublime():
    """Liu et al. 2022: a learned graph against an anchor that follows it slowly, told apart node by node."""
    hidden, out, k = 128, 64, 30
    learner = [weight(D, hidden), bias(hidden), weight(hidden, hidden), bias(hidden)]
    contrast = [weight(D, hidden), bias(hidden), weight(hidden, out), bias(out)]
    projector = [weight(out, out), bias(out), weight(out, out), bias(out)]
    a0 = sym(A)
    sparse, anchor = a0.to_sparse_csr(), a0.clone()
    optimizer = torch.optim.Adam(learner + contrast + projector, lr=0.01)

    def view(a, mask):
        w, b, v, c = contrast
        x = X * (torch.rand(D) >= mask)
        a = F.dropout(a, 0.5)
        h = F.dropout((a @ (x @ w) + b).relu(), 0.5)
        h = a @ (h @ v) + c
        w, b, v, c = projector
        return F.normalize((h @ w + b).relu() @ v + c)

    def epoch():
        optimizer.zero_grad()
        w, b, v, c = learner
        z = F.normalize(sparse @ ((sparse @ (X @ w) + b).tanh() @ v) + c)
        s = top(z @ z.t(), k + 1).relu()
        s = sym((s + s.t()) / 2 * (1 - I))
        score = (view(anchor, 0.6) @ view(s, 0.7).t() / 0.2).exp()
        own = score.diag()
        loss = -((own / score.sum(1)).log() + (own / score.sum(0)).log()).mean() / 2
        loss.backward()
        optimizer.step()
        anchor.mul_(0.9999).add_(s.detach(), alpha=1e-4)

    return epoch


def prognn():
    """Jin et al. 2020: the adjacency itself is learned, a step after two of the network."""
    run, params = network(16)
    S = Parameter(A.clone())
    optimizer = torch.optim.Adam(params, lr=0.01, weight_decay=5e-4)
    of_graph = torch.optim.SGD([S], lr=0.01, momentum=0.9)
    step = 0

    def loss():
        return F.cross_entropy(run(X, sym((S + S.t()) / 2), True)[train], labels)

    def epoch():
        nonlocal step
        if step % 3 == 0:
            of_graph.zero_grad()
            s = (S + S.t()) / 2
            r = (s.sum(1) + 1e-3).rsqrt()
            laplacian = torch.diag(s.sum(1)) - s
            smooth = (X.t() @ ((r[:, None] * laplacian * r[None, :]) @ X)).trace()
            (torch.linalg.norm(S - A) + loss() + smooth).backward()
            of_graph.step()
            with torch.no_grad():
                if o.nuclear > 0:
                    u, sigma, v = torch.linalg.svd(S)
                    S.copy_(u @ torch.diag((sigma - 0.01 * o.nuclear).clamp(min=0)) @ v)
                S.copy_((S.sign() * (S.abs() - 0.01 * 5e-4).clamp(min=0)).clamp(0, 1))
        else:
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
        step += 1
        with torch.no_grad():
            run(X, sym((S + S.t()) / 2), False)

    return epoch


epoch = globals()[o.model]()
for _ in range(3):
    epoch()
begun, count = time.perf_counter(), 0
while count < o.rounds or count % 3:
    epoch()
    count += 1
report(ms=1e3 * (time.perf_counter() - begun) / count)
