"""Ask a running `gsrc serve DIR --data PATH --updates` with Triton's public client.

    pip install "tritonclient[all]"
    python client.py --http 127.0.0.1:8000 --grpc 127.0.0.1:8001

Over HTTP (JSON and binary tensors) and over gRPC: health, metadata, answers for nodes,
one update, errors. Every protocol must give the same numbers. It ends with 1 where
something is not as it should be.
"""

import argparse
import sys

import numpy as np
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from tritonclient.utils import InferenceServerException


def ask(module, client, model, inputs, binary=True, outputs=None):
    """Runs a model; inputs are NumPy arrays by name. Returns arrays by name and the version of the graph."""
    kinds = {"f": "FP32", "i": "INT64", "O": "BYTES"}
    given = []
    for name, array in inputs.items():
        tensor = module.InferInput(name, array.shape, kinds[array.dtype.kind])
        if module is httpclient:
            tensor.set_data_from_numpy(array, binary_data=binary)
        else:
            tensor.set_data_from_numpy(array)
        given.append(tensor)
    wanted = None
    if outputs is not None:
        extra = {"binary_data": binary} if module is httpclient else {}
        wanted = [module.InferRequestedOutput(name, **extra) for name in outputs]
    result = client.infer(model, given, outputs=wanted)
    reply = result.get_response()
    if module is httpclient:
        version = reply["parameters"]["graph_version"]
        names = [o["name"] for o in reply["outputs"]]
    else:
        version = reply.parameters["graph_version"].int64_param
        names = [o.name for o in reply.outputs]
    return {name: result.as_numpy(name) for name in names}, version


def text(*words):
    return np.array(words, dtype=object)


def plain(array):
    """Elements as Python has them; text over JSON comes as str, else as bytes."""
    return [x.decode() if isinstance(x, bytes) else x for x in array.ravel().tolist()]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--http", default="127.0.0.1:8000")
    p.add_argument("--grpc", default="127.0.0.1:8001")
    args = p.parse_args()
    web, rpc = httpclient.InferenceServerClient(args.http), grpcclient.InferenceServerClient(args.grpc)

    for client in web, rpc:
        assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("nodes")
        assert not client.is_model_ready("no-such-model")
    assert web.get_server_metadata()["name"] == rpc.get_server_metadata().name == "gsrc"
    classes = web.get_model_metadata("nodes")["outputs"][2]["shape"][1]
    assert rpc.get_model_metadata("nodes").outputs[2].shape[1] == classes
    features = web.get_model_metadata("classifier")["inputs"][0]["shape"][1]

    outputs = ["probabilities", "label", "class", "logits"]
    ways = [("HTTP, JSON", httpclient, web, False), ("HTTP, binary", httpclient, web, True), ("gRPC", grpcclient, rpc, True)]
    query = {"number": np.array([0, 5, 0], dtype=np.int64)}
    first, version = ask(httpclient, web, "nodes", query)
    assert first["probabilities"].shape == (3, classes) and np.allclose(first["probabilities"].sum(1), 1, atol=1e-5)
    for name, module, client, binary in ways:
        got, v = ask(module, client, "nodes", query, binary, outputs)
        assert v == version
        for o in outputs:
            if got[o].dtype.kind == "f":
                # JSON carries a float32 in as many digits as give it back.
                assert np.array_equal(got[o].astype(np.float32), first[o]), (name, o)
            else:
                assert plain(got[o]) == plain(first[o]), (name, o)
        print(f"{name}: nodes agree, version {v} of the graph")

    # A graph of one's own.
    rng = np.random.default_rng(0)
    x = (rng.random((6, features)) < 0.05).astype(np.float32)
    edges = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]], dtype=np.int64)
    own = []
    for name, module, client, binary in ways:
        tensors = []
        for key, array, kind in ("x", x, "FP32"), ("edge_index", np.concatenate([edges, edges[::-1]], 1), "INT64"):
            t = module.InferInput(key, array.shape, kind)
            t.set_data_from_numpy(array, **({"binary_data": binary} if module is httpclient else {}))
            tensors.append(t)
        own.append(client.infer("classifier", tensors).as_numpy("logits"))
        assert np.array_equal(own[0], own[-1]), name
        print(f"{name}: classifier of a graph that comes along agrees")

    for name, module, client, binary in ways:
        update = {"source": text(b"0"), "target": text(b"%d" % (100 + version))}
        added, v = ask(module, client, "update", update, binary)
        assert v == version + 1, (v, version)
        after, w = ask(module, client, "nodes", query, binary, outputs)
        assert w >= v
        version = v
        print(f"{name}: update made version {v}, {added['num_edges'][0]} edges")
        for bad, model in (({"number": np.array([-1], dtype=np.int64)}, "nodes"), ({"node": text(b"nobody at all")}, "nodes"), (query, "no-such-model")):
            try:
                ask(module, client, model, bad, binary)
            except InferenceServerException as e:
                assert e.status() in ("400", "404", "StatusCode.INVALID_ARGUMENT", "StatusCode.NOT_FOUND"), e.status()
            else:
                sys.exit(f"{name}: {bad} of {model} was answered")
    print("ok")


if __name__ == "__main__":
    main()
