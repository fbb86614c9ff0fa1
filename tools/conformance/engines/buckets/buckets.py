"""The tables that a model exported with --lowering precomputed-buckets takes, from edge_index. Copy this file; it needs NumPy.

    python buckets.py vectors.json    checks it against the test vectors
"""
import numpy as np

ROWS = (1, 2, 4, 8, 16, 32, 64)
SEGMENTS = (4, 16, 64)


def build_tables(num_nodes, edge_index):
    """Inputs table_* of the model, by name; edge_index is int64 [2, E], row 0 sources and row 1 targets."""
    src, dst = (np.asarray(row, np.int64) for row in edge_index)
    if src.size and not (0 <= min(src.min(), dst.min()) and max(src.max(), dst.max()) < num_nodes):
        raise ValueError(f"edge_index holds a node outside 0 to {num_nodes - 1}")
    counted = np.flatnonzero(src != dst)
    counted = counted[np.argsort(dst[counted], kind="stable")]  # by target, in the order of the edges
    degree = np.bincount(dst[counted], minlength=num_nodes).astype(np.int64)

    first = _rows(degree, ROWS)
    order = np.full(first["entries"], src.size, np.int64)
    order[_spread(first["start"], degree)] = counted
    zeros = first["rows"].sum()
    restore = np.where(degree == 0, zeros, first["row"])

    # Nodes with more than 64 edges have several rows of 64, which segments sum.
    hubs = np.flatnonzero(degree > 64)
    pieces = -(-degree[hubs] // 64)
    second = _rows(pieces, SEGMENTS)
    segments = np.full(second["entries"], first["rows"][-1], np.int64)
    segments[_spread(second["start"], pieces)] = _spread(first["row"][hubs] - first["rows"][:-1].sum(), pieces)
    restore[hubs] = zeros + 1 + second["row"]

    # Those with more than 64 rows have several segments of 64, which rest sums.
    huge = np.flatnonzero(pieces > 64)
    pieces2 = -(-pieces[huge] // 64)
    rest = np.full((huge.size, max(1, pieces2.max(initial=1))), second["rows"][-1], np.int64)
    rest[np.repeat(np.arange(huge.size), pieces2), _spread(0 * pieces2, pieces2)] = _spread(second["row"][huge] - second["rows"][:-1].sum(), pieces2)
    restore[hubs[huge]] = zeros + 1 + second["rows"].sum() + np.arange(huge.size)
    return {"table_degree": degree, "table_order": order, "table_order_rows": first["rows"], "table_segments": segments,
            "table_segment_rows": second["rows"], "table_rest": rest, "table_restore": restore.astype(np.int64)}


def _rows(counts, widths):
    """Where the rows of items are: those of the narrowest width that fits, several of the widest above it."""
    counts, widths = np.asarray(counts, np.int64), np.asarray(widths, np.int64)
    kind = np.searchsorted(widths[:-1], counts)
    needs = -(-counts // widths[kind])
    rows = np.bincount(kind, needs, minlength=widths.size).astype(np.int64)
    base_row = np.cumsum(rows) - rows
    base_entry = np.cumsum(rows * widths) - rows * widths
    row = np.empty_like(counts)
    for c in range(widths.size):
        of = kind == c
        row[of] = np.cumsum(needs[of]) - needs[of]
    return {"rows": rows, "row": base_row[kind] + row, "start": base_entry[kind] + row * widths[kind], "entries": int((rows * widths).sum())}


def _spread(start, counts):
    """start, start + 1, … of every item, counts numbers each."""
    begin = np.cumsum(counts) - counts
    return np.repeat(start - begin, counts) + np.arange(counts.sum())


if __name__ == "__main__":
    import json, sys

    with open(sys.argv[1]) as f:
        vectors = json.load(f)
    for v in vectors:
        got = build_tables(v["num_nodes"], v["edge_index"])
        for name, want in v["tables"].items():
            want = np.asarray(want["data"], np.int64).reshape(want["shape"])
            if got[name].shape != want.shape or got[name].dtype != np.int64 or (got[name] != want).any():
                sys.exit(f"{v['name']}: {name} is {got[name].tolist()}, want {want.tolist()}")
    print(f"{len(vectors)} vectors agree")
