"""Compares graph.DeepWalk with gensim's Word2Vec on the same walks.

    pip install gensim scikit-learn
    python graph/testdata/deepwalk/compare.py ../shared/datasets/planetoid/cora [epochs [seeds]]

Run it from the root of the repository. The walks are those of
graph.RandomWalks (10 a node, length 80); both sides embed them with 128
columns, window 10, 5 negatives, skip-gram, and the same number of epochs;
gensim runs with 2 workers, DeepWalk with 2 threads. The probe is a logistic
regression (C = 10) on the L2-normalised embedding: test accuracy in percent
on the public split and, with 20 labelled nodes of each class and 1000 test
nodes, the mean over 10 random splits.
"""

import os
import pickle
import subprocess
import sys
import tempfile
import time

import numpy as np
from gensim.models import Word2Vec
from sklearn.linear_model import LogisticRegression


def planetoid(folder):
    """Returns the number of nodes, the edges and the labels."""
    base = os.path.join(folder, "ind." + os.path.basename(os.path.normpath(folder)) + ".")

    def load(part):
        with open(base + part, "rb") as f:
            return pickle.load(f, encoding="latin1")

    graph, ally, ty = load("graph"), load("ally"), load("ty")
    test = np.loadtxt(base + "test.index", dtype=int)
    y = np.zeros((len(graph), ally.shape[1]))
    y[: len(ally)] = ally
    y[test] = ty
    edges = {(min(u, v), max(u, v)) for u, vs in graph.items() for v in vs if u != v}
    return len(graph), np.array(sorted(edges)), y.argmax(1), np.sort(test), len(load("y"))


def probe(z, y, public_train, public_test):
    z = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)

    def accuracy(train, test):
        model = LogisticRegression(C=10, max_iter=500).fit(z[train], y[train])
        return 100 * (model.predict(z[test]) == y[test]).mean()

    random = []
    for seed in range(10):
        r = np.random.default_rng(seed)
        p = r.permutation(len(y))
        train = np.concatenate([p[y[p] == c][:20] for c in range(y.max() + 1)])
        random.append(accuracy(train, r.permutation(np.setdiff1d(p, train))[:1000]))
    return accuracy(public_train, public_test), np.mean(random)


def main():
    folder = sys.argv[1]
    epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    seeds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    n, edges, y, test, labelled = planetoid(folder)
    train = np.arange(labelled)
    rows = []
    with tempfile.TemporaryDirectory() as tmp:
        path = lambda name: os.path.join(tmp, name)
        np.savetxt(path("edges.txt"), edges, fmt="%d")
        subprocess.run(["go", "build", "-o", path("deepwalk"), "./graph/testdata/deepwalk"], check=True)
        for seed in range(seeds):
            out = subprocess.run(
                [path("deepwalk"), str(n), path("edges.txt"), path("walks.txt"), path("x.f32"), str(epochs), str(seed), "2"],
                check=True, capture_output=True, text=True)
            ours = np.fromfile(path("x.f32"), "<f4").reshape(n, -1)
            walks = [line.split() for line in open(path("walks.txt"))]
            start = time.time()
            model = Word2Vec(walks, vector_size=128, window=10, negative=5, sg=1, sample=0, min_count=0,
                             epochs=epochs, workers=2, seed=seed)
            seconds = time.time() - start
            theirs = np.zeros_like(ours)
            for i in range(n):
                if str(i) in model.wv:
                    theirs[i] = model.wv[str(i)]
            for name, z, s in (("gsrc", ours, float(out.stdout)), ("gensim", theirs, seconds)):
                rows.append((name, seed, *probe(z, y, train, test), s))
                print("%-7s seed %d  public %.1f  20 a class %.2f  %.1f s" % rows[-1], flush=True)
    for name in ("gsrc", "gensim"):
        mean = np.mean([r[2:] for r in rows if r[0] == name], axis=0)
        print("%-7s mean    public %.1f  20 a class %.2f  %.1f s" % (name, *mean))


if __name__ == "__main__":
    main()
