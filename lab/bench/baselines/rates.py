"""What PyTorch's matrix product (m k n) or exponential function (rows cols) takes."""
import argparse, torch
from common import median, report, times

p = argparse.ArgumentParser()
p.add_argument("what", choices=["matmul", "exp"])
p.add_argument("sizes", type=int, nargs="+")
p.add_argument("--threads", type=int, default=2)
p.add_argument("--rounds", type=int, default=15)
p.add_argument("--transpose", default="NN", choices=["NN", "NT", "TN"])
o = p.parse_args()
torch.set_num_threads(o.threads)
if o.what == "matmul":
    m, k, n = o.sizes
    a = torch.randn(m, k) if o.transpose[0] == "N" else torch.randn(k, m).t()
    b = torch.randn(k, n) if o.transpose[1] == "N" else torch.randn(n, k).t()
    out = torch.empty(m, n)
    f = lambda: torch.mm(a, b, out=out)
else:
    a = torch.randn(*o.sizes)
    out = torch.empty_like(a)
    f = lambda: torch.exp(a, out=out)
repeat = max(1, int(4 / max(times(f, 3)[-1], 1e-3)))
report(ms=median(times(lambda: [f() for _ in range(repeat)], o.rounds)) / repeat)
