"""Compares preprocess.onnx with scikit-learn's ColumnTransformer, which fits the same table by itself.

columns.py DIR: nodes.csv is the table, columns.json the schema, preprocess.onnx the model and x.f32 the
features that gsrc has made. Prints the largest differences, and exits with 1 above 1e-5.
"""
import csv, datetime, json, sys

import numpy as np
import onnxruntime as ort
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, RobustScaler

folder = sys.argv[1]
schema = json.load(open(folder + "/columns.json"))
rows = list(csv.DictReader(open(folder + "/nodes.csv", newline="")))
columns = schema["columns"]
periods = {"year": 31556952.0, "week": 604800.0, "day": 86400.0}


def cell(kind, text):
    if kind == "category":
        return text
    if text == "":
        return float("nan")
    if kind == "boolean":
        return {"true": 1.0, "false": 0.0}[text]
    if kind == "time":
        return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.timezone.utc).timestamp()
    return float(text)


values = {c["name"]: np.array([cell(c["kind"], r[c["name"]]) for r in rows], dtype=object if c["kind"] == "category" else np.float64) for c in columns}
frame = np.empty((len(rows), len(columns)), dtype=object)
for i, c in enumerate(columns):
    frame[:, i] = values[c["name"]]


def cycle(period):
    def turn(v):
        v = v.astype(np.float64)
        out = np.concatenate([np.sin(2 * np.pi * v / period), np.cos(2 * np.pi * v / period)], axis=1)
        return np.where(np.isnan(v), 0, out)

    return FunctionTransformer(turn)


to_number = FunctionTransformer(lambda v: v.astype(np.float64))
clip = FunctionTransformer(lambda v: np.clip(v, -5, 5))
marks = FunctionTransformer(lambda v: np.isnan(v.astype(np.float64)).astype(np.float64))
parts = []
for i, c in enumerate(columns):
    kind = c["kind"]
    if kind == "category":
        known = c["categories"]
        parts.append((f"{i}", OneHotEncoder(categories=[known], handle_unknown="ignore", sparse_output=False), [i]))
        parts.append((f"{i} other", FunctionTransformer(lambda v, known=known: (~np.isin(v.astype(str), known)).astype(np.float64)), [i]))
        continue
    if kind == "boolean":
        parts.append((f"{i}", make_pipeline(to_number, SimpleImputer(strategy="most_frequent")), [i]))
    else:
        parts.append((f"{i}", make_pipeline(to_number, RobustScaler(quantile_range=(25, 75)), clip, SimpleImputer(strategy="constant", fill_value=0)), [i]))
    if c.get("missing"):
        parts.append((f"{i} missing", marks, [i]))
    for p in c.get("cycles", []):
        parts.append((f"{i} {p}", cycle(periods[p]), [i]))
want = ColumnTransformer(parts).fit_transform(frame)

session = ort.InferenceSession(folder + "/preprocess.onnx", providers=["CPUExecutionProvider"])
have = session.run(None, values)[0]
trained = np.fromfile(folder + "/x.f32", dtype="<f4").reshape(have.shape)
worst = [float(np.abs(a - want).max()) for a in (have, trained)]
print(f"{len(rows)} rows, {have.shape[1]} features: preprocess.onnx within {worst[0]:.1e} of scikit-learn, the training within {worst[1]:.1e}")
sys.exit(max(worst) > 1e-5)
