"""Check ONNX files with the onnx package: onnx.checker with full checks, shape inference in strict mode, and a name for
every node.

    python check.py MODEL.onnx [MODEL.onnx ...]
"""
import sys

import onnx

bad = 0
for path in sys.argv[1:]:
    try:
        onnx.checker.check_model(path, full_check=True)
        model = onnx.load(path)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        unnamed = [n.op_type for n in model.graph.node if not n.name]
        if unnamed:
            raise ValueError(f"nodes without a name: {unnamed}")
    except Exception as e:
        print(f"{path}: {e}")
        bad += 1
print(f"{len(sys.argv) - 1 - bad} of {len(sys.argv) - 1} files pass")
sys.exit(bool(bad))
