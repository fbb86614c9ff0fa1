"""Runs the models of gsrc exports on the test data that they carry, and compares the outputs.

    pip install -r requirements.txt
    python check.py onnxruntime|reference|checker|openvino DIST...

reference is the evaluator of the onnx package, checker its checks of the file (full, with
strict shape inference), openvino Intel's engine (pip install -r requirements-openvino.txt). An
export carries more graphs than one where it was built with --test-cases. Prints a line for each
model: "ok" with the largest error, "FAIL", or "lacks" with what the engine cannot do. Exit code 1
after a FAIL."""
import json, pathlib, sys
import numpy as np, onnx
from onnx import numpy_helper


def check_edges(edge_index, num_nodes):
    """Refuses edges to nodes that there are not. Copy this: not every engine looks at what a Gather reads."""
    edge_index = np.asarray(edge_index)
    if edge_index.dtype != np.int64 or edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise ValueError(f"edge_index is {edge_index.dtype} of shape {edge_index.shape}, want int64 [2, E]")
    wrong = np.argwhere((edge_index < 0) | (edge_index >= num_nodes))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(f"edge_index[{row}, {column}] is {edge_index[row, column]}, outside the nodes 0 to {num_nodes - 1}")


class OnnxRuntime:
    def __init__(self, path):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # faulty graphs are told by the exception
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def run(self, inputs, names):
        return self.session.run(names, inputs)


class Reference:
    def __init__(self, path):
        from onnx.reference import ReferenceEvaluator
        from onnx.reference.op_run import OpRun

        class GatherElements(OpRun):
            """The evaluator's own is made of numpy.choose, which takes no more than 64 rows."""
            op_domain = ""

            def _run(self, data, indices, axis=0):
                return (np.take_along_axis(data, indices, axis),)

        self.evaluator = ReferenceEvaluator(path, new_ops=[GatherElements])

    def run(self, inputs, names):
        return self.evaluator.run(names, inputs)


class OpenVino:
    """Intel's engine. It does not look at what a Gather reads: check edges before the call."""

    square = """<ir_version: 8, opset_import: ["": 17]> square (int64[1] x) => (int64[1] y) { y = Mul(x, x) }"""

    def __init__(self, path):
        import openvino
        core = openvino.Core()
        # The CPU plug-in would compute in bfloat16 where the processor has it.
        self.model = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        # --symmetrize and the pipeline number pairs of nodes, up to N² and 4·N².
        about = {p.key: p.value for p in onnx.load(path, load_external_data=False).metadata_props}
        pairs = 4 if "k" in about else about.get("symmetrize") == "true"
        self.largest = None
        if pairs:
            small = core.compile_model(core.read_model(onnx.parser.parse_model(self.square).SerializeToString()), "CPU")
            if small({"x": np.array([2**16])})[0][0] != 2**32:
                self.largest = int((2**31 / pairs) ** 0.5)  # nodes

    def run(self, inputs, names):
        nodes = len(inputs["x"]) if "x" in inputs else len(inputs.get("x_indptr", [0])) - 1
        if self.largest and nodes > self.largest:
            raise NotImplementedError(f"int64 is computed in 32 bits, which end at {self.largest} nodes here; shown by {self.square} with x = [65536]")
        result = self.model(inputs)
        return [result[name] for name in names]


ENGINES = {"onnxruntime": OnnxRuntime, "reference": Reference, "openvino": OpenVino}


def tensors(folder, kind, count):
    """The tensors kind_0.pb, kind_1.pb … of a folder of test data, by name."""
    loaded = [onnx.load_tensor(folder / f"{kind}_{i}.pb") for i in range(count)]
    return {t.name: numpy_helper.to_array(t) for t in loaded}


def refused(call):
    try:
        call()
    except Exception:
        return True
    return False


def check_file(path):
    """What the onnx package says of a file; raises where something is wrong."""
    onnx.checker.check_model(path, full_check=True)
    onnx.shape_inference.infer_shapes(onnx.load(path), check_type=True, strict_mode=True, data_prop=True)


def check_model(dist, info, engine):
    """Runs every test case; the line to print after the model's name."""
    path = str(dist / info["file"])
    if engine == "checker":
        check_file(path)
        return "ok"
    try:
        model = ENGINES[engine](path)
    except Exception as error:
        return problem("loading", error)
    largest, cases, by_file, by_host, count, lacks = 0.0, 0, 0, 0, 0, []
    within = info.get("tolerance", {"abs": 1e-5, "rel": 1e-4})  # wider where the model computes in 8 bits
    for case in info.get("test_cases") or [{"name": "sub-graph", "data": info["test_data"]}]:
        inputs = tensors(dist / case["data"], "input", len(info["inputs"]))
        names = [output["name"] for output in info["outputs"]]
        if "edge_index" in inputs:
            nodes = len(inputs["x"]) if "x" in inputs else len(inputs["x_indptr"]) - 1
            if case.get("refused"):
                count += 1
                by_host += refused(lambda: check_edges(inputs["edge_index"], nodes))
                by_file += refused(lambda: model.run(inputs, names))
                continue
            check_edges(inputs["edge_index"], nodes)
        want = tensors(dist / case["data"], "output", len(info["outputs"]))
        try:
            got = model.run(inputs, names)
        except NotImplementedError as error:
            lacks.append(f"{case['name']}: {error}")
            continue
        except Exception as error:
            return problem(case["name"], error)
        for name, a in zip(names, got):
            a, b = np.asarray(a), want[name]
            if a.shape != b.shape or a.dtype != b.dtype:
                return f"FAIL {case['name']}: {name} is {a.dtype} of shape {a.shape}, want {b.dtype} of {b.shape}"
            if b.dtype.kind == "i" and not np.array_equal(a, b):
                return f"FAIL {case['name']}: {name} has other integers than it should"
            error, bound = np.abs(a - b).max(initial=0), within["abs"] + within["rel"] * np.abs(b).max(initial=0)
            if not error <= bound:  # NaN is not
                return f"FAIL {case['name']}: {name} is off by {error:.3g}, the bound is {bound:.3g}"
            largest = max(largest, float(error))
        cases += 1
    if by_host < count:
        return f"FAIL the check of edges let {count - by_host} of {count} faulty graphs pass"
    if by_file < count and engine != "openvino":
        return f"FAIL the file let {count - by_file} of {count} faulty graphs pass"
    if lacks:
        return f"lacks {'; '.join(lacks)}. The other {cases} graphs are right, max_abs={largest:.2e}"
    return f"ok max_abs={largest:.2e} graphs={cases} refused={count} by_file={by_file}"


def problem(where, error):
    """An engine may lack an operator, and then says so; anything else is a failure."""
    text = " ".join(str(error).split())[:300]
    return f"{'lacks' if isinstance(error, NotImplementedError) else 'FAIL'} {where}: {type(error).__name__}: {text}"


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("checker", *ENGINES):
        sys.exit(__doc__)
    engine, failed = sys.argv[1], False
    module = __import__("onnx" if engine in ("checker", "reference") else engine)
    print(f"runtime {engine} {module.__version__}", flush=True)
    for folder in map(pathlib.Path, sys.argv[2:]):
        manifest = json.loads((folder / "manifest.json").read_text())
        for role, info in sorted(manifest["models"].items()):
            try:
                line = check_model(folder, info, engine)
            except Exception as error:
                line = f"FAIL {type(error).__name__}: {' '.join(str(error).split())[:300]}"
            print(folder.name, role, line, flush=True)
            failed |= line.startswith("FAIL")
    sys.exit(failed)


if __name__ == "__main__":
    main()
