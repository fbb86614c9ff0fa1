"""What scikit-learn makes of a company's tables ("gsrc data generate") on the split of a run, and what gsrc's models do:
AUC of test nodes, and of the customers whose label nodes.csv leaves out. Boosted trees (HistGradientBoostingClassifier)
read the columns; degree and means of the neighbours' columns, too; or, beside these, the training labels of neighbours
one and two steps away. NAME=predictions.csv adds what "gsrc predict" wrote.
"""
import argparse, csv, json, os
from datetime import datetime
import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

p = argparse.ArgumentParser()
p.add_argument("data")
p.add_argument("run", help="whose split.json is taken")
p.add_argument("predictions", nargs="*", metavar="NAME=FILE")
p.add_argument("--seeds", type=int, default=3)
o = p.parse_args()


def table(path):
    with open(path, newline="") as f:
        rows = list(csv.DictReader(f))
    return {name: [r[name] for r in rows] for name in rows[0]}


def seconds(text):
    return datetime.fromisoformat(text).timestamp() if text else np.nan


nodes, edges, truth = (table(os.path.join(o.data, name + ".csv")) for name in ("nodes", "edges", "truth"))
number = {v: i for i, v in enumerate(nodes["customer_id"])}
n = len(number)
label = np.array([{"yes": 1, "no": 0, "": -1}[v] for v in nodes["churned"]])
hidden = np.array([number[v] for v in truth["customer_id"]])
answer = label.copy()
answer[hidden] = [v == "yes" for v in truth["churned"]]
with open(os.path.join(o.run, "split.json")) as f:
    split = json.load(f)
train, val, test = (np.array(split[part]) for part in ("train", "val", "test"))

numbers = [np.array([float(v or "nan") for v in nodes[name]]) for name in ("age", "income", "transactions", "balance")]
numbers += [np.array([seconds(v) for v in nodes[name]]) for name in ("joined", "last_login")]
numbers.append(np.array([{"true": 1, "false": 0, "": np.nan}[v] for v in nodes["premium"]]))
numbers = np.stack(numbers, 1)
onehot = []
for name in ("region", "product"):
    values, at, counts = np.unique(nodes[name], return_inverse=True, return_counts=True)
    onehot.append(np.eye(len(values))[at][:, counts >= n / 1000])
onehot = np.concatenate(onehot, 1)
columns = np.concatenate([numbers, onehot], 1)

u, v = (np.array([number[x] for x in edges[name]]) for name in ("payer", "payee"))
a = sp.coo_matrix((np.ones(len(u)), (u, v)), (n, n)).tocsr()
a = ((a + a.T) > 0).astype(float)
a.setdiag(0)
a.eliminate_zeros()
two = ((a @ a) > 0).astype(float)
two.setdiag(0)
two.eliminate_zeros()


def share(a, values, known):
    """Mean of the known values of the neighbours, and how many they are."""
    count = a @ known.astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.stack([a @ np.where(known, values, 0) / count, count], 1)


means = [share(a, c, ~np.isnan(c))[:, :1] for c in columns.T]
near = np.concatenate([columns, np.asarray(a.sum(1)), *means], 1)
known = np.zeros(n, bool)
known[train] = True
labels = np.concatenate([near, share(a, answer, known), share(two, answer, known)], 1)


def line(name, p, also=""):
    print(f"| {name} | {100 * roc_auc_score(answer[test], p[test]):.2f} | {100 * roc_auc_score(answer[hidden], p[hidden]):.2f} |{also}")


print("| | test | label left out |\n|---|---|---|")
for name, x in (("columns alone", columns), ("with degree and the neighbours' means", near), ("with training labels one and two steps away, too", labels)):
    # Depth, rate and number of trees by the validation nodes, then the mean of several seeds.
    best = (0, None)
    for depth in (3, 6):
        for rate in (0.03, 0.1):
            m = HistGradientBoostingClassifier(max_depth=depth, learning_rate=rate, max_iter=400, random_state=0, validation_fraction=0.1, n_iter_no_change=20, early_stopping=True)
            m.fit(x[train], answer[train])
            score = roc_auc_score(answer[val], m.predict_proba(x[val])[:, 1])
            if score > best[0]:
                best = (score, m)
    ps = [best[1].set_params(random_state=s).fit(x[train], answer[train]).predict_proba(x)[:, 1] for s in range(o.seeds)]
    line("HistGradientBoosting, " + name, np.mean(ps, 0))
for given in o.predictions:
    name, path = given.split("=", 1)
    t = table(path)
    at = np.array([number[v] for v in t["id"]])
    q = np.empty(n)
    q[at] = [float(v) for v in t["p_yes"]]
    line("gsrc, " + name, q)
