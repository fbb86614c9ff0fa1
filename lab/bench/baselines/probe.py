"""Linear probes of embeddings of a Planetoid data set on its public split: gsrc's ("gsrc embed RUN --out FILE.npz"), and
two that are trained here on the same graph without labels: PyTorch Geometric's Deep Graph Infomax (Veličković et al. 2019) as
its example has it, and GRACE (Zhu et al. 2020) with the layers and hyper-parameters of its authors for Cora. The probe is
scikit-learn's logistic regression on standardised columns, its C chosen by the validation nodes.

    python probe.py FOLDER NAME FILE.npz...
"""
import argparse, warnings
import numpy as np, torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch_geometric.io import read_planetoid_data
from torch_geometric.nn import DeepGraphInfomax, GCNConv
from torch_geometric.utils import dropout_edge

warnings.filterwarnings("ignore")
p = argparse.ArgumentParser()
p.add_argument("folder", help="with ind.NAME.*")
p.add_argument("name")
p.add_argument("embeddings", nargs="*")
p.add_argument("--seeds", type=int, default=3)
p.add_argument("--epochs", type=int, default=300)
p.add_argument("--hidden", type=int, default=512)
p.add_argument("--grace-epochs", type=int, default=200)
p.add_argument("--threads", type=int, default=2)
o = p.parse_args()
torch.set_num_threads(o.threads)
d = read_planetoid_data(o.folder, o.name)
y = d.y.numpy()
train, val, test = (m.numpy() for m in (d.train_mask, d.val_mask, d.test_mask))


def probe(h):
    """Test and validation accuracy in percent."""
    best = (-1, 0)
    for c in (1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100):
        m = make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=2000)).fit(h[train], y[train])
        best = max(best, (100 * m.score(h[val], y[val]), 100 * m.score(h[test], y[test])), key=lambda b: b[0])
    return best[1], best[0]


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.prelu = GCNConv(d.x.shape[1], o.hidden), torch.nn.PReLU(o.hidden)

    def forward(self, x, edge_index):
        return self.prelu(self.conv(x, edge_index))


def infomax(seed):
    torch.manual_seed(seed)
    m = DeepGraphInfomax(o.hidden, Encoder(), lambda z, *a: z.mean(0).sigmoid(), lambda x, e: (x[torch.randperm(len(x))], e))
    opt = torch.optim.Adam(m.parameters(), lr=0.001)
    x = d.x / d.x.sum(1, keepdim=True).clamp(min=1)
    for _ in range(o.epochs):
        opt.zero_grad()
        m.loss(*m(x, d.edge_index)).backward()
        opt.step()
    with torch.no_grad():
        return m.encoder(x, d.edge_index).numpy()


def grace(seed):
    """Two views that drop edges and columns; a node is to be told from all others of both by its other view."""
    torch.manual_seed(seed)
    hidden, tau = 128, 0.4
    convs = torch.nn.ModuleList([GCNConv(d.x.shape[1], 2 * hidden), GCNConv(2 * hidden, hidden)])
    project = torch.nn.Sequential(torch.nn.Linear(hidden, hidden), torch.nn.ELU(), torch.nn.Linear(hidden, hidden))
    parameters = [*convs.parameters(), *project.parameters()]
    opt = torch.optim.Adam(parameters, lr=5e-4, weight_decay=1e-5)
    x = d.x / d.x.sum(1, keepdim=True).clamp(min=1)

    def encode(x, edges):
        for conv in convs:
            x = conv(x, edges).relu()
        return x

    def view(edges, columns):
        keep = torch.rand(x.shape[1]) >= columns
        return F.normalize(project(encode(x * keep, dropout_edge(d.edge_index, p=edges)[0])))

    def loss(a, b):
        own, other = (a @ a.T / tau).exp(), (a @ b.T / tau).exp()
        return -(other.diag() / (own.sum(1) + other.sum(1) - own.diag())).log().mean()

    for _ in range(o.grace_epochs):
        opt.zero_grad()
        a, b = view(0.2, 0.3), view(0.4, 0.4)
        ((loss(a, b) + loss(b, a)) / 2).backward()
        opt.step()
    with torch.no_grad():
        return encode(x, d.edge_index).numpy()


def line(name, results):
    t, v = np.array(results).T
    print(f"| {name} | {t.mean():.1f} ± {t.std(ddof=1) if len(t) > 1 else 0:.1f} | {v.mean():.1f} |", flush=True)


print("| | test | validation |\n|---|---|---|")
line("features", [probe(d.x.numpy())])
if o.embeddings:
    line(f"gsrc, {len(o.embeddings)} runs", [probe(np.load(f)["embedding"]) for f in o.embeddings])
if o.seeds:
    line(f"Deep Graph Infomax, {o.seeds} seeds", [probe(infomax(s)) for s in range(o.seeds)])
    line(f"GRACE, {o.seeds} seeds", [probe(grace(s)) for s in range(o.seeds)])
