"""Makes the graphs without features of docs/own-data.md, and holds what gsrc says of their edges against counts:

    gsrc data plant cora --fraction 0.2 --seed 3 --out DIR/cora && rm DIR/cora/features.*    # and so citeseer
    python examples/without_features.py make DIR [amazon_cs.npz]     # DIR/plane, DIR/communities, DIR/amazon
    gsrc train ecl-gsr --data DIR/cora --out RUN --baselines off
    gsrc refine RUN --threshold 0 --keep-removed --out DIR/cora/judged.csv
    python examples/without_features.py judge DIR/cora

A fifth of the edges is wrong, between random nodes. judge prints the AUC of right edges before wrong ones, of
probabilities and of a logistic regression that tells edges from random pairs by counts. It takes NumPy.
"""
import csv
import math
import sys
from pathlib import Path

import numpy as np


def write(folder, classes, right, seed):
    draw, n = np.random.default_rng(seed), len(classes)
    kept = [e for e in sorted(right) if draw.random() > 0.1]
    wrong = set()
    while len(wrong) < round(len(kept) / 4):
        a, b = sorted(int(v) for v in draw.integers(0, n, 2))
        if a != b and (a, b) not in right:
            wrong.add((a, b))
    folder.mkdir(parents=True, exist_ok=True)
    splits = [("train", "val", "test", "test")[draw.integers(4)] for _ in range(n)]
    for name, head, rows in (
        ("nodes.csv", "id,label,split", zip(range(n), classes, splits)),
        ("edges.csv", "source,target", sorted(set(kept) | wrong)),
        ("truth.csv", "source,target,truth", [(*e, "wrong") for e in sorted(wrong)]),
    ):
        (folder / name).write_text("\n".join([head, *(",".join(map(str, r)) for r in rows)]) + "\n")


def make(folder, amazon=None):
    draw = np.random.default_rng(5)
    points = draw.random((700, 2))
    near = ((points[:, None] - points) ** 2).sum(2) < 0.065**2
    write(folder / "plane", [2 * int(x > 0.5) + int(y > 0.5) for x, y in points], {(int(a), int(b)) for a, b in np.argwhere(np.triu(near, 1))}, 1)
    group, edges = draw.integers(0, 4, 1400), set()
    while len(edges) < 4900:
        a, b = sorted(int(v) for v in draw.integers(0, 1400, 2))
        if a != b and (group[a] == group[b] or draw.random() < 0.03):
            edges.add((a, b))
    write(folder / "communities", group, edges, 2)
    if amazon:
        z = np.load(amazon)
        first, to = z["adj_indptr"], z["adj_indices"]
        edges = {(min(a, int(b)), max(a, int(b))) for a in range(3000) for b in to[first[a]:first[a + 1]] if b < 3000 and b != a}
        write(folder / "amazon", z["labels"][:3000], edges, 3)


def rows(path):
    with open(path) as f:
        return list(csv.DictReader(f))


def judge(folder):
    pair = lambda r: frozenset((r["source"], r["target"]))
    edges = list({pair(r) for r in rows(folder / "edges.csv")})
    wrong = {pair(r) for r in rows(folder / "truth.csv") if r["truth"] == "wrong"}
    probability = {pair(r): float(r["probability"]) for r in rows(folder / "judged.csv") if r["status"] != "new"}
    near = {}
    for a, b in edges:
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)

    def counts(a, b):
        x, y = near[a] - {b}, near[b] - {a}
        both = x & y
        rare, three = sum(1 / math.log(len(near[w])) for w in both), sum(len((near[w] - {a}) & y) for w in x)
        return [1, math.log1p(len(both)), rare, len(both) / max(1, len(x | y)), *sorted((math.log1p(len(x)), math.log1p(len(y)))), math.log1p(three)]

    draw, names, none = np.random.default_rng(0), sorted(near), []
    while len(none) < len(edges):
        a, b = draw.choice(names, 2)
        if a != b and b not in near[a]:
            none.append((a, b))
    x = np.array([counts(*sorted(e)) for e in edges] + [counts(*e) for e in none])
    x[:, 1:] = (x[:, 1:] - x[:, 1:].mean(0)) / (x[:, 1:].std(0) + 1e-9)
    y, w = np.repeat([1.0, 0.0], len(edges)), np.zeros(x.shape[1])
    for _ in range(30):  # Newton's steps
        p = 1 / (1 + np.exp(-x @ w))
        w += np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + 0.01 * np.eye(len(w)), x.T @ (y - p) - 0.01 * w)
    bad, p = np.array([e in wrong for e in edges]), np.array([probability[e] for e in edges])

    def auc(score):
        good, less = score[~bad][:, None], score[bad]
        return float((good > less).mean() + (good == less).mean() / 2)

    print(f"{folder.name}: {len(edges)} edges, AUC {auc(p):.3f}, by counts {auc((x @ w)[:len(edges)]):.3f}; {(p < 0.5).sum()} below 0.5, {bad[p < 0.5].mean():.0%} of them wrong")


if __name__ == "__main__":
    command, folder, *more = sys.argv[1:]
    {"make": make, "judge": judge}[command](Path(folder), *more)
