"""What the baselines share: the data that gsrc wrote for them, timing, and the line that they print."""
import json, os, resource, sys, time
import numpy as np
import scipy.sparse as sp


def arrays(folder):
    """Reads an array of the folder by its name."""
    return lambda name: np.load(os.path.join(folder, name + ".npy"))


class Data:
    """The data set in a folder of .npy files: X raw [n, D] in CSR, A the adjacency without self-loops."""

    def __init__(self, folder):
        read = arrays(folder)
        n, features, self.classes = (int(v) for v in read("sizes"))
        self.X = sp.csr_matrix((read("x_val"), read("x_col"), read("x_ptr")), shape=(n, features))
        ptr, col = read("a_ptr"), read("a_col")
        self.A = sp.csr_matrix((np.ones(len(col), np.float32), col, ptr), shape=(n, n))
        self.train, self.labels = read("train"), read("labels")  # of the training nodes
        self.n, self.features = n, features

    def rows(self, norm):
        """X with rows divided by their l1 or l2 norm."""
        length = np.asarray(self.X.sum(1) if norm == "l1" else np.sqrt(self.X.multiply(self.X).sum(1))).ravel()
        return sp.diags((1 / np.maximum(length, 1e-9)).astype(np.float32)) @ self.X

    def normalised(self):
        """D^-1/2 (A + I) D^-1/2 in CSR."""
        a = self.A + sp.eye(self.n, dtype=np.float32)
        d = sp.diags(np.asarray(a.sum(1)).ravel() ** -0.5)
        return (d @ a @ d).tocsr().astype(np.float32)


def device(o):
    """Sets threads, the seed, and where tensors lie, by the flags --threads and --device."""
    import torch

    torch.set_num_threads(o.threads)
    torch.set_default_device(o.device)
    torch.manual_seed(0)


def waited(f):
    """f, after which a GPU has done what was queued."""
    torch = sys.modules.get("torch")
    if torch is None or torch.get_default_device().type != "cuda":
        return f
    return lambda: (f(), torch.cuda.synchronize())


def times(f, steps, limit=20.0):
    """Milliseconds of the given number of calls, after one or two that do not count; fewer calls once limit seconds are over."""
    f = waited(f)
    start = time.perf_counter()
    f()
    if time.perf_counter() - start < 2:
        f()
    out, begun = [], time.perf_counter()
    while len(out) < steps and (not out or time.perf_counter() - begun < limit):
        start = time.perf_counter()
        f()
        out.append(1e3 * (time.perf_counter() - start))
    return out


def median(values):
    return float(np.median(values))


def peak_mib():
    """Largest resident set of this process, or what PyTorch held of a GPU. ru_maxrss counts the parent's too until the program is loaded."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return torch.cuda.max_memory_reserved() / (1 << 20)
    try:
        with open("/proc/self/status") as f:
            return next(int(line.split()[1]) / 1024 for line in f if line.startswith("VmHWM"))
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1 << 20) if sys.platform == "darwin" else peak / 1024


def report(**values):
    """Print the one line that gsrc reads."""
    print(json.dumps(dict(values, peak_mib=peak_mib())))
