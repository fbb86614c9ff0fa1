"""Writes the fixtures beside it: models of PyTorch Geometric as state dicts, and what
they compute. python make.py; needs torch, torch_geometric, numpy and safetensors.

graph.npz is the data set that all of them are for: directed, with an isolated node and
edges in one and both directions. NAME.safetensors is a state dict, NAME.logits.safetensors
the logits of that model in evaluation, and models.json lists the settings that the state
dict does not hold. weighted.npz has weights of edges, those of self-loops among them, and
weighted.json lists the models for it."""
import argparse, json, pathlib
import numpy as np, torch, torch.nn.functional as F
from safetensors.torch import save_file
from torch_geometric.nn import GAT, GATConv, GCN, GCNConv, GraphSAGE, SAGEConv, Sequential

parser = argparse.ArgumentParser()
parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
parser.add_argument("--nodes", type=int, default=12)
parser.add_argument("--features", type=int, default=5)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
args.out.mkdir(parents=True, exist_ok=True)
torch.manual_seed(args.seed)
rng = np.random.default_rng(args.seed)
n, D, H, C = args.nodes, args.features, 8, 3

x = rng.random((n, D), dtype=np.float32) * (rng.random((n, D)) < 0.6)
pairs = {(int(u), int(v)) for u, v in rng.integers(0, n - 1, (3 * n, 2)) if u != v} | {(0, 1), (1, 0)}
edges = np.array(sorted(pairs), dtype=np.int64).T  # the last node has none
part = np.arange(n) % 4
np.savez_compressed(args.out / "graph.npz", node_features=x.astype(np.float32), node_labels=np.arange(n) % C, edges=edges.T,
                    train_masks=(part < 2)[None], val_masks=(part == 2)[None], test_masks=(part == 3)[None])
x, edges = torch.from_numpy(x.astype(np.float32)), torch.from_numpy(edges)


class Stack(torch.nn.Module):
    """Layers by name, in order; an activation behind each but the last."""

    def __init__(self, act, weight=None, **layers):
        super().__init__()
        self.weight = weight  # of every edge, or of each; without one PyG ignores GCNConv's improved
        self.act, self.names = act, list(layers)
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, x, edge_index):
        for i, name in enumerate(self.names):
            layer = getattr(self, name)
            if isinstance(layer, (torch.nn.Linear, torch.nn.BatchNorm1d)):
                x = layer(x)
            elif self.weight is None:
                x = layer(x, edge_index)
            else:
                x = layer(x, edge_index, torch.as_tensor(self.weight).expand(edge_index.shape[1]))
            last = i + 1 == len(self.names)
            if not last and not isinstance(getattr(self, self.names[i + 1]), torch.nn.BatchNorm1d):
                x = self.act(x)
        return x


relu, elu = F.relu, F.elu
models = {
    "gcn": (Stack(relu, conv1=GCNConv(D, H), conv2=GCNConv(H, C)), []),
    "gcn_plain": (Stack(torch.tanh, conv1=GCNConv(D, H, bias=False), conv2=GCNConv(H, C, bias=False)), ["activation=tanh"]),
    "gcn_improved": (Stack(relu, weight=1.0, conv1=GCNConv(D, H, improved=True), conv2=GCNConv(H, C)), ["conv1.improved=true"]),
    "gcn_no_loops": (Stack(relu, conv1=GCNConv(D, H, add_self_loops=False), conv2=GCNConv(H, C, add_self_loops=False)), ["add_self_loops=false"]),
    "gcn_sum": (Stack(relu, conv1=GCNConv(D, H, normalize=False), conv2=GCNConv(H, C)), ["conv1.normalize=false"]),
    "gcn_basic": (GCN(D, H, 3, C, norm="batch_norm"), []),
    "gcn_head": (Stack(relu, conv1=GCNConv(D, H), bn1=torch.nn.BatchNorm1d(H), conv2=GCNConv(H, H), lin=torch.nn.Linear(H, C)), []),
    "gat": (Stack(elu, conv1=GATConv(D, H, heads=4), conv2=GATConv(4 * H, C, heads=2, concat=False)), ["activation=elu"]),
    "gat_plain": (Stack(elu, conv1=GATConv(D, H, heads=2, bias=False, negative_slope=0.1), conv2=GATConv(2 * H, C, heads=1, bias=False)),
                  ["activation=elu", "conv1.negative_slope=0.1"]),
    "gat_mean": (Stack(elu, conv1=GATConv(D, H, heads=3, concat=False, bias=False), conv2=GATConv(H, C)), ["activation=elu"]),
    "gat_residual": (Stack(elu, conv1=GATConv(D, H, heads=2, residual=True), conv2=GATConv(2 * H, C, heads=2, concat=False, residual=True)), ["activation=elu"]),
    "gat_basic": (GAT(D, H, 2, C, heads=2, act="elu"), ["activation=elu"]),
    "sage": (Stack(relu, conv1=SAGEConv(D, H), conv2=SAGEConv(H, C)), []),
    "sage_plain": (Stack(relu, conv1=SAGEConv(D, H, bias=False), conv2=SAGEConv(H, C, root_weight=False)), []),
    "sage_normalize": (Stack(relu, conv1=SAGEConv(D, H, normalize=True), conv2=SAGEConv(H, C)), ["conv1.normalize=true"]),
    "sage_sum": (Stack(relu, conv1=SAGEConv(D, H, aggr="sum"), conv2=SAGEConv(H, C)), ["conv1.aggr=sum"]),
    "sage_max": (Stack(relu, conv1=SAGEConv(D, H, aggr="max"), conv2=SAGEConv(H, C, aggr="max")), ["aggr=max"]),
    "sage_basic": (GraphSAGE(D, H, 2, C), []),
    "sequential": (Sequential("x, edge_index", [(GCNConv(D, H), "x, edge_index -> x"), torch.nn.ReLU(), (GATConv(H, C), "x, edge_index -> x")]), []),
}
# A symmetric graph with weights, where half of the nodes have a self-loop.
a = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.3), 1)
a = (a + a.T + np.diag(np.where(np.arange(n) % 2 == 0, 3 * rng.random(n) + 0.1, 0))).astype(np.float32)


def csr(prefix, m):
    rows, columns = np.nonzero(m)
    return {prefix + "data": m[rows, columns], prefix + "indices": columns, prefix + "indptr": np.searchsorted(rows, np.arange(len(m) + 1)), prefix + "shape": np.array(m.shape)}


np.savez_compressed(args.out / "weighted.npz", labels=np.arange(n) % C, **csr("adj_", a), **csr("attr_", x.numpy()))
targets, sources = np.nonzero(a)
weighted, weights = torch.from_numpy(np.stack([sources, targets])), torch.from_numpy(a[targets, sources])
weighted_models = {
    "weighted_gcn": (Stack(relu, weight=weights, conv1=GCNConv(D, H), conv2=GCNConv(H, C)), []),
    "weighted_gcn_improved": (Stack(relu, weight=weights, conv1=GCNConv(D, H, improved=True), conv2=GCNConv(H, C)), ["conv1.improved=true"]),
    "weighted_gcn_no_loops": (Stack(relu, weight=weights, conv1=GCNConv(D, H, add_self_loops=False), conv2=GCNConv(H, C)), ["conv1.add_self_loops=false"]),
    "weighted_gcn_sum": (Stack(relu, weight=weights, conv1=GCNConv(D, H, normalize=False), conv2=GCNConv(H, C)), ["conv1.normalize=false"]),
}


def write(name, model, index):
    for parameter in model.parameters():  # biases begin as zeros, which would prove nothing
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, std=0.3)
    for module in model.modules():
        if hasattr(module, "running_mean"):
            torch.nn.init.normal_(module.running_mean, std=0.3)
            torch.nn.init.uniform_(module.running_var, 0.5, 2)
    model.eval()
    with torch.no_grad():
        logits = model(x, index)
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, args.out / f"{name}.safetensors")
    save_file({"logits": logits.contiguous()}, args.out / f"{name}.logits.safetensors")


for listed, given, index in (("models.json", models, edges), ("weighted.json", weighted_models, weighted)):
    for name, (model, said) in given.items():
        write(name, model, index)
    (args.out / listed).write_text(json.dumps({name: said for name, (_, said) in given.items()}, indent=1) + "\n")
