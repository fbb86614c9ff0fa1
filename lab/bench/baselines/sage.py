"""GraphSAGE of three layers on drawn neighbours, as DGL's documentation writes it: a batch of 1024 nodes with 15, 10
and 5 neighbours, 5 next to the seeds. The time is that of drawing a batch, gathering its features, and a step."""
import argparse, time, warnings
import numpy as np, torch, torch.nn.functional as F
from common import arrays, median, report

warnings.filterwarnings("ignore")
import dgl

p = argparse.ArgumentParser()
p.add_argument("data")
p.add_argument("--threads", type=int, default=2)
p.add_argument("--batches", type=int, default=20)
o = p.parse_args()
torch.set_num_threads(o.threads)
torch.manual_seed(0)
read = arrays(o.data)
n, features, classes = (int(v) for v in read("sizes"))
graph = dgl.graph(("csc", (torch.tensor(read("a_ptr")), torch.tensor(read("a_col")), torch.tensor([], dtype=torch.int32)))).formats(["csc"])
x = torch.rand(n, features) - 0.5  # as gsrc draws them
y = torch.arange(n) % classes


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        widths = [features, 256, 256, classes]
        self.convs = torch.nn.ModuleList(dgl.nn.SAGEConv(a, b, "mean") for a, b in zip(widths, widths[1:]))

    def forward(self, blocks, h):
        for i, (block, conv) in enumerate(zip(blocks, self.convs)):
            h = conv(block, h)
            if i < 2:
                h = F.dropout(h.relu(), 0.5, self.training)
        return h


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
# Version 2.1.0's fused sampler gives indices out of range.
sampler = dgl.dataloading.NeighborSampler([15, 10, 5], fused=False)
seeds = torch.randperm(n)[: 1024 * (o.batches + 3)].int()
took, start = [], time.perf_counter()
for source, seed, blocks in dgl.dataloading.DataLoader(graph, seeds, sampler, batch_size=1024, shuffle=True, num_workers=0):
    loss = F.cross_entropy(net(blocks, x[source.long()]), y[seed.long()])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    took.append(1e3 * (time.perf_counter() - start))
    start = time.perf_counter()
report(ms=median(took[3:]))
