"""A random forest on statistics of whole graphs: sizes, quantiles of degrees, triangles, clustering, and shares of node labels.
Reads a collection with its ten folds (TU's or GIN's files in a zip) and prints a line of CSV for each fold."""
import argparse, collections, io, os, zipfile
import numpy as np, scipy.sparse as sp
from sklearn.ensemble import RandomForestClassifier

TREES = 500

p = argparse.ArgumentParser()
p.add_argument("data", help="zip file")
p.add_argument("--out", required=True, help="CSV file: fold, accuracy in percent on its test graphs")
p.add_argument("--threads", type=int, default=1)
o = p.parse_args()
archive = zipfile.ZipFile(o.data)
names = {os.path.basename(n): n for n in archive.namelist()}
read = lambda name: archive.read(names[name]).decode()
numbers = lambda name: np.loadtxt(io.StringIO(read(name)), dtype=np.int64, delimiter=",", ndmin=1)


def tu(prefix):
    """Graphs of TU's files: edges and labels of their nodes, and the graphs' classes."""
    of = numbers(prefix + "_graph_indicator.txt") - 1
    edges = numbers(prefix + "_A.txt").reshape(-1, 2) - 1
    labels = numbers(prefix + "_node_labels.txt").reshape(len(of), -1)[:, 0]
    first = np.searchsorted(of, np.arange(of[-1] + 2))
    at = of[edges[:, 0]]
    order = np.argsort(at, kind="stable")
    cut = np.searchsorted(at[order], np.arange(of[-1] + 2))
    graphs = [(edges[order[cut[g]:cut[g + 1]]] - first[g], labels[first[g]:first[g + 1]]) for g in range(of[-1] + 1)]
    return graphs, numbers(prefix + "_graph_labels.txt")


def gin(name):
    """The same of GIN's file: of each graph its size and class, and a line for each node with label, degree and neighbours."""
    lines = iter(read(name).splitlines())
    graphs, classes = [], []
    for _ in range(int(next(lines))):
        n, c = map(int, next(lines).split())
        rows = [np.fromstring(next(lines), dtype=np.int64, sep=" ") for _ in range(n)]
        ends = np.concatenate([r[2:] for r in rows])
        graphs.append((np.stack([np.repeat(np.arange(n), [r[1] for r in rows]), ends], 1), np.array([r[0] for r in rows])))
        classes.append(c)
    return graphs, np.array(classes)


def statistics(edges, labels, kinds):
    n = len(labels)
    edges = edges[edges[:, 0] != edges[:, 1]]
    a = sp.csr_matrix((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    a = ((a + a.T) > 0).astype(np.float64)
    degree = np.asarray(a.sum(1)).ravel()
    triangles = np.asarray((a @ a).multiply(a).sum(1)).ravel() / 2
    pairs = degree * (degree - 1) / 2
    clustering = np.divide(triangles, pairs, out=np.zeros(n), where=pairs > 0)
    m, parts = a.nnz / 2, sp.csgraph.connected_components(a, directed=False)[0]
    return [n, m, 2 * m / max(1, n * (n - 1)), parts, degree.mean(), degree.std(), *np.quantile(degree, [0, 0.25, 0.5, 0.75, 1]),
            triangles.sum() / 3, triangles.sum() / max(1, pairs.sum()), clustering.mean(), *np.quantile(clustering, [0.25, 0.5, 0.75]), *(np.mean(labels == k) for k in kinds)]


whole = [n for n in names if n.endswith("_graph_indicator.txt")]
graphs, classes = tu(whole[0][: -len("_graph_indicator.txt")]) if whole else gin(next(n for n in names if n.endswith(".txt") and "_idx" not in n))
count = collections.Counter(int(k) for _, labels in graphs for k in labels)
kinds = sorted(count) if len(count) > 1 else []
x = np.array([statistics(e, l, kinds) for e, l in graphs])
with open(o.out, "w") as f:
    print("fold,accuracy", file=f)
    for fold in range(10):
        train, test = (numbers(f"{part}_idx-{fold + 1}.txt") for part in ("train", "test"))
        forest = RandomForestClassifier(TREES, random_state=fold, n_jobs=o.threads).fit(x[train], classes[train])
        print(f"{fold},{100 * np.mean(forest.predict(x[test]) == classes[test]):.10g}", file=f)
