"""Asks an export for the customers of a DataFrame, as docs/company.md does:

    python examples/company.py DIST DATA predictions.csv

DIST is what "gsrc build RUN --with-columns" wrote, DATA a folder of "gsrc data generate", predictions.csv what
"gsrc predict DIST --data DATA" says of it, which the answers are held against.
"""
import json
import sys

import numpy as np
import onnxruntime as ort
import pandas as pd

dist, data, predictions = sys.argv[1:]
schema = json.load(open(f"{dist}/manifest.json"))["columns"]
# Cells as gsrc reads them: texts without spaces around them, of which some stand for a gap, in any case.
frame = pd.read_csv(f"{data}/nodes.csv", dtype=str, keep_default_na=False).apply(lambda c: c.str.strip())
frame = frame.mask(frame.apply(lambda c: c.str.lower().isin(schema["gaps"])))
payments = pd.read_csv(f"{data}/edges.csv")

# Edges as gsrc reads them: undirected, once for each pair (--merge sum), in both directions,
# and as the training took their weights (--weight-transform log1p).
row = pd.Series(np.arange(len(frame)), index=frame["customer_id"])
ends = np.sort([row[payments["payer"]], row[payments["payee"]]], axis=0)
merged = pd.DataFrame({"u": ends[0], "v": ends[1], "w": payments["amount"].astype(np.float32)}).groupby(["u", "v"], as_index=False).sum()
u, v, w = merged["u"].to_numpy(), merged["v"].to_numpy(), np.log1p(merged["w"]).to_numpy(np.float32)

model = ort.InferenceSession(f"{dist}/classifier_with_columns.onnx")
inputs = {"edge_index": np.stack([np.append(u, v), np.append(v, u)]).astype(np.int64), "edge_weight": np.append(w, w)}
yes_no = {"true": 1, "t": 1, "yes": 1, "y": 1, "1": 1, "false": 0, "f": 0, "no": 0, "n": 0, "0": 0}
for column in schema["columns"]:
    c = frame[column["name"]]
    if column["kind"] == "category":
        inputs[column["name"]] = c.fillna("").to_numpy(dtype=object)
        continue
    if column["kind"] == "time":
        c = c.str.replace("UTC|GMT", "Z", regex=True)  # pandas reads no zone by a name
        c = (pd.to_datetime(c, utc=True, format="ISO8601") - pd.Timestamp(0, tz="UTC")) / pd.Timedelta("1s")
    elif column["kind"] == "boolean":
        c = c.str.lower().map(yes_no)
    inputs[column["name"]] = pd.to_numeric(c).to_numpy(dtype=np.float64, na_value=np.nan)
probabilities = model.run(["probabilities"], inputs)[0]

expected = pd.read_csv(predictions)[["p_no", "p_yes"]].to_numpy()
difference = np.abs(probabilities - expected).max()
print(f"{len(frame)} customers, largest difference from gsrc predict {difference:.2g}")
sys.exit(1 if difference > 1e-5 else 0)
