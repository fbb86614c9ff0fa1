"""Plain link predictors: how likely the edges of a graph, and pairs two steps apart that have none, are edges.
Every edge is judged without itself: its ends' degrees and neighbourhoods do not count it. Trained predictors
tell real edges from random pairs, in five folds, so that none has seen what it judges; one tells them from pairs
with ends drawn by degree, and from alike pairs, too."""
import argparse, csv, warnings
import numpy as np, scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from common import Data, report

FOLDS, DIMENSIONS = 5, 128
AT_ONCE = 4000  # pairs

warnings.filterwarnings("ignore")
p = argparse.ArgumentParser()
p.add_argument("data")
p.add_argument("--out", required=True, help="CSV file: source, target, status and a column for each predictor")
p.add_argument("--seed", type=int, default=0)
p.add_argument("--threads", type=int, default=2)
o = p.parse_args()
d = Data(o.data)
n, rng = d.n, np.random.default_rng(o.seed)
A = d.A.tocsr().astype(np.float64)
A.data[:] = 1
degree = np.diff(A.indptr)


def normalised(x):
    length = sp.linalg.norm(x, axis=1) if sp.issparse(x) else np.linalg.norm(x, axis=1)
    return sp.diags(1 / np.maximum(length, 1e-12)) @ x


counts = d.X.min() >= 0  # else idf means nothing
idf = np.log((1 + n) / (1 + (d.X != 0).sum(0).A1)) + 1 if counts else np.ones(d.features)
T = normalised(d.X.astype(np.float64) @ sp.diags(idf)).tocsr()
size = min(DIMENSIONS, min(T.shape) - 1)
Z = TruncatedSVD(size, random_state=o.seed).fit_transform(T) if size > 0 else T.toarray()
around = A @ Z  # sums over neighbours
adamic = sp.diags(1 / np.log(np.maximum(degree, 2)))
resource = sp.diags(1 / np.maximum(degree, 1))
votes = np.zeros((n, 1))
if len(np.unique(d.labels)) > 1:
    votes = LogisticRegression(max_iter=300).fit(T[d.train], d.labels).predict_proba(T)

dot = lambda a, b: a.multiply(b).sum(1).A1
rows = lambda a, b: np.einsum("ij,ij->i", a, b)
cosine = lambda a, b: rows(a, b) / np.maximum(np.sqrt(rows(a, a) * rows(b, b)), 1e-12)


def evidence(pairs, real):
    """Twelve columns of pairs, which are edges where real says so."""
    parts = []
    for i in range(0, len(pairs), AT_ONCE):
        (u, v), here = pairs[i:i + AT_ONCE].T, real[i:i + AT_ONCE]
        du, dv, common = degree[u] - here, degree[v] - here, dot(A[u], A[v])
        alone = lambda a, b: (around[a] - here[:, None] * Z[b]) / np.maximum(degree[a] - here, 1)[:, None]
        # Paths of three steps over the edge itself: from either end to it, back over it, or from it.
        paths = dot(A[u] @ A, A[v]) - here * (degree[u] + degree[v] - 1)
        parts.append(np.c_[
            dot(T[u], T[v]), cosine(Z[u] + alone(u, v), Z[v] + alone(v, u)), cosine(alone(u, v), alone(v, u)), dot(A[u] @ adamic, A[v]),
            dot(A[u] @ resource, A[v]), common / np.maximum(du + dv - common, 1), paths / np.sqrt(np.maximum(du * dv, 1)),
            common, np.minimum(du, dv), np.maximum(du, dv), cosine(Z[u], Z[v]), rows(votes[u], votes[v])])
    return np.concatenate(parts)


UNBOUNDED = np.isin(np.arange(12), [3, 4, 6, 7, 8, 9])  # of these columns the logarithm counts


def candidates(many):
    """The pairs without an edge two steps apart that have the most Adamic-Adar."""
    two = sp.triu(A @ adamic @ A, 1).tocoo()
    pairs = np.c_[two.row, two.col].astype(np.int64)
    order = np.argsort(-two.data, kind="stable")
    pairs = pairs[order][~taken(pairs[order])]
    return pairs[:many]


edges = sp.triu(A, 1).tocoo()
edges = np.c_[edges.row, edges.col].astype(np.int64)
codes = np.sort(edges[:, 0] * n + edges[:, 1])


def taken(pairs):
    code = pairs.min(1) * n + pairs.max(1)
    return codes[np.minimum(np.searchsorted(codes, code), len(codes) - 1)] == code


new = candidates(max(len(edges), 200_000))
fakes = rng.integers(0, n, (2 * len(edges), 2))
fakes = fakes[(fakes[:, 0] != fakes[:, 1]) & ~taken(fakes)][:len(edges)]
of_edges, of_fakes, of_new = (evidence(x, np.full(len(x), r)) for x, r in ((edges, 1), (fakes, 0), (new, 0)))


def trained(make, columns, of_fakes=of_fakes):
    """Scores of edges and of new pairs by a model of some columns."""
    x, z = (np.where(UNBOUNDED, np.log1p(v), v)[:, columns] for v in (np.r_[of_edges, of_fakes], of_new))
    y = np.r_[np.ones(len(edges)), np.zeros(len(of_fakes))]
    fold = rng.permutation(len(x)) % FOLDS
    scores, others = np.zeros(len(x)), np.zeros(len(z))
    for f in range(FOLDS):
        model = make().fit(x[fold != f], y[fold != f])
        scores[fold == f] = model.predict_proba(x[fold == f])[:, 1]
        if len(z):
            others += model.predict_proba(z)[:, 1] / FOLDS
    return scores[:len(edges)], others


def disguised():
    """As many pairs without an edge with ends drawn by degree as there are edges, and as many alike ones: of 20
    random pairs that with the largest cosine of the features."""
    ends = rng.choice(np.repeat(np.arange(n), degree), (2 * len(edges), 2))
    ends = ends[(ends[:, 0] != ends[:, 1]) & ~taken(ends)][:len(edges)]
    alike, X = [], normalised(d.X.astype(np.float64)).tocsr()
    for _ in range(20):
        pairs = rng.integers(0, n, (len(edges), 2))
        u, v = pairs.T
        cosines = np.concatenate([dot(X[u[i:i + AT_ONCE]], X[v[i:i + AT_ONCE]]) for i in range(0, len(u), AT_ONCE)])
        cosines[(u == v) | taken(pairs)] = -np.inf
        alike.append((cosines, pairs))
    best = np.argmax([c for c, _ in alike], axis=0)
    return np.r_[ends, np.array([p for _, p in alike])[best, np.arange(len(edges))]]


logistic = lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
trees = lambda: HistGradientBoostingClassifier(random_state=o.seed)
columns = {
    "cosine_of_tf-idf" if counts else "cosine_of_features": (of_edges[:, 0], of_new[:, 0]),
    "Adamic-Adar": (of_edges[:, 3], of_new[:, 3]),
    "Adamic-Adar_times_cosine": (of_edges[:, 3] * of_edges[:, 0], of_new[:, 3] * of_new[:, 0]),
    "logistic_regression_of_four": trained(logistic, [0, 3, 5, 6]),
    "boosted_trees_of_twelve": trained(trees, list(range(12))),
}
more = disguised()
columns["boosted_trees_against_three_kinds"] = trained(trees, list(range(12)), np.r_[of_fakes, evidence(more, np.zeros(len(more)))])
# Of the new pairs those are written that are among the likeliest of a predictor, as many as there are edges.
likely = np.unique(np.concatenate([np.argsort(-c[1], kind="stable")[:len(edges)] for c in columns.values()]))
new, columns = new[likely], {name: (c[0], c[1][likely]) for name, c in columns.items()}
with open(o.out, "w", newline="") as f:
    w = csv.writer(f)
    w.writerow(["source", "target", "status", *("evidence_" + c for c in columns)])
    for k, (pairs, status) in enumerate(((edges, "old"), (new, "new"))):
        for (u, v), scores in zip(pairs.tolist(), zip(*(c[k].tolist() for c in columns.values()))):
            w.writerow([u, v, status, *(f"{s:.6g}" for s in scores)])
report(ms=0)
