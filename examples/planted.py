"""Makes the three planted graphs of docs/auto.md, and holds plain methods against them:

    python examples/planted.py DIR
    gsrc train auto --data DIR/activity        # DIR/houses; of DIR/mines with --set train.select=auc

activity and houses have no features: the classes are roles of nodes, by degree and by corners of small
houses. mines is a board of which half the squares show how many mines are around them. 60 % of
the nodes are for training, 20 % for validation. It takes NumPy, SciPy and scikit-learn.
"""
import os
import sys

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

rng = np.random.default_rng(1)


def mines(side=70):
    n = side * side
    mine = (rng.random(n) < 0.2).astype(int)
    edges, near = [], [[] for _ in range(n)]
    for row in range(side):
        for col in range(side):
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                r, c = row + down, col + right
                if 0 <= r < side and 0 <= c < side:
                    u, v = row * side + col, r * side + c
                    edges.append((u, v))
                    near[u].append(v)
                    near[v].append(u)
    hidden = rng.random(n) < 0.5
    x = np.zeros((n, 10))
    for v in range(n):
        x[v, 9 if hidden[v] else mine[near[v]].sum()] = 1
    return x, mine, edges


def houses(size=300, many=80):
    y, edges, pool = [0] * size, [], []
    for v in range(5, size):  # a few nodes have most edges
        ends = set()
        while len(ends) < 3:
            ends.add(int(rng.choice(pool or range(5))) if rng.random() < 0.9 or v < 8 else int(rng.integers(0, v)))
        for u in ends:
            edges.append((v, u))
            pool += [u, v]
    for _ in range(many):  # two corners at the roof, two at the ground, and the roof
        b = len(y)
        y += [1, 1, 2, 2, 3]
        edges += [(b, b + 1), (b + 1, b + 2), (b + 2, b + 3), (b + 3, b), (b, b + 4), (b + 1, b + 4), (b + 2, int(rng.integers(0, size)))]
    for _ in range(len(y) // 10):
        u, v = rng.integers(0, len(y), 2)
        if u != v:
            edges.append((int(u), int(v)))
    return np.zeros((len(y), 0)), np.array(y), edges


def activity(n=1200, many=14000):
    active = rng.pareto(1.5, n) + 0.3
    edges = set()
    while len(edges) < many:
        u, v = rng.choice(n, 2, p=active / active.sum())
        if u != v:
            edges.add((min(u, v), max(u, v)))
    return np.zeros((n, 0)), np.digitize(active * np.exp(0.2 * rng.normal(size=n)), np.quantile(active, [0.25, 0.5, 0.75])), sorted(edges)


def plain(name, x, y, edges, train, test):
    """Columns, those of neighbours in two steps, counts, and classes of training nodes one and two steps away."""
    n, e = len(y), np.array(edges)
    a = sp.coo_matrix((np.ones(len(e)), (e[:, 0], e[:, 1])), (n, n)).tocsr()
    a = ((a + a.T) > 0).astype(float)
    degree, triangles = np.asarray(a.sum(1)).ravel(), np.asarray((a @ a).multiply(a).sum(1)).ravel() / 2
    p = sp.diags(1 / np.maximum(degree, 1)) @ a
    counts = np.c_[np.log1p(degree), triangles, np.log1p(triangles), np.asarray((a @ a > 0).sum(1)).ravel(), p @ degree, p @ triangles, triangles / np.maximum(degree * (degree - 1) / 2, 1)]
    known = np.zeros((n, y.max() + 1))
    known[train, y[train]] = 1
    two = p @ (p @ known) - np.asarray(p.multiply(p.T).sum(1)) * known  # without the node's own
    own = np.c_[x, p @ x, p @ (p @ x), counts]
    for what, columns in (("columns and counts", own), ("columns, counts and training labels", np.c_[own, p @ known, two])):
        columns = StandardScaler().fit_transform(columns)
        for model in LogisticRegression(max_iter=500), RandomForestClassifier(300, random_state=0):
            chances = model.fit(columns[train], y[train]).predict_proba(columns[test])
            auc = f", AUC {100 * roc_auc_score(y[test], chances[:, 1]):.1f}" if y.max() == 1 else ""
            print(f"{name}, {type(model).__name__} of {what}: {100 * (chances.argmax(1) == y[test]).mean():.1f} %{auc}")


for make in mines, houses, activity:
    x, y, edges = make()
    order = np.random.default_rng(5).permutation(len(y))
    split = np.empty(len(y), object)
    train, val, test = np.split(order, [int(0.6 * len(y)), int(0.8 * len(y))])
    split[train], split[val], split[test] = "train", "val", "test"
    folder = os.path.join(sys.argv[1], make.__name__)
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/nodes.csv", "w") as f:
        f.write(",".join(["id", *(f"x{i}" for i in range(x.shape[1])), "label", "split"]) + "\n")
        for v in range(len(y)):
            f.write(",".join([f"n{v}", *(f"{c:g}" for c in x[v]), f"c{y[v]}", split[v]]) + "\n")
    with open(f"{folder}/edges.csv", "w") as f:
        f.write("source,target\n" + "".join(f"n{u},n{v}\n" for u, v in edges))
    plain(make.__name__, x, y, edges, train, test)
