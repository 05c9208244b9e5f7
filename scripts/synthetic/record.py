"""The program record of a synthetic run, as the agent would write it: graph, layers, settings."""

from collections.abc import Iterable
from typing import Any

from scripts.synthetic.operation import Kind, Op, Shape
from scripts.synthetic.run import Run

SCRIPT = "train.py"

CLASSES = {
    "conv2d": "Conv2D", "depthwise_conv2d": "DepthwiseConv2D", "dense": "Dense", "re_lu": "ReLU",
    "batch_normalization": "BatchNormalization", "activation": "Activation", "permute": "Permute",
    "lstm": "LSTM", "max_pooling2d": "MaxPooling2D", "average_pooling2d": "AveragePooling2D", "scale": "Multiply",
    "global_average_pooling2d": "GlobalAveragePooling2D",
}  # fmt: skip
"""Keras' classes by the default names of their layers, without the number."""

TYPES = {"fp16": "float16", "bf16": "bfloat16"}

SIZES = ("int32", [4])
"""The operand of a gradient with the sizes of its result."""


def record(run: Run) -> dict[str, Any]:
    """Return the content of program.json.gz."""
    steps = tuple(dict.fromkeys(run.network.training_step()))  # those of a loop run again and again
    layers = dict.fromkeys(layer for op in steps if (layer := layer_of(op)))
    lines = {layer_of(op): op.line for op in reversed(steps)}
    dtype = TYPES.get(run.precision, "float32")
    policy = "float32" if dtype == "float32" else f"mixed_{dtype}"
    graph = {"name": "one_step_on_data", "kind": "function", "operations": _rows(steps, dtype)}
    return {
        "schema": 1,
        "graphs": [graph],
        "layers": [_layer(name, lines[name], dtype, run) for name in layers],
        "datasets": [_DIVIDED] if run.replicas > 1 else [],
        "feeds": None,
        "input_kind": "tf.data",
        "run": {
            "policy": policy,
            "optimizer": "Adam",
            "loss_scale": run.precision == "fp16",
            "jit_compile": False,
            "run_eagerly": False,
            "steps_per_execution": 1,
            "batch_size": run.network.batch * run.replicas,
            "strategy": "MirroredStrategy" if run.replicas > 1 else "_DefaultDistributionStrategy",
            "replicas": run.replicas,
            "debugging": _DETERMINISM if run.network.deterministic else [],
        },
    }


_DETERMINISM = [{"aid": "op_determinism", "at": [SCRIPT, 5]}]

_DIVIDED = {"id": 0, "class": "_RebatchDataset"}
"""The dataset with which a strategy splits batches among replicas."""


def layer_of(op: Op) -> str:
    """Return the layer of an operation; "" for the optimizer."""
    name = op.name.removeprefix("gradient_tape/").partition("/")[0]
    return "" if name == "adam" else name


def _layer(name: str, line: int, dtype: str, run: Run) -> dict[str, Any]:
    kind = CLASSES.get(name) or CLASSES[name.rpartition("_")[0]]
    config = {"axis": [3]} if kind == "BatchNormalization" else {}
    return {
        "name": name, "class": kind, "module": "keras.src.layers", "config": config,
        "compute_dtype": dtype, "at": [SCRIPT, line],
        "recurrent": _recurrent(run) if kind == "LSTM" else None,
    }  # fmt: skip


def _recurrent(run: Run) -> dict[str, Any]:
    """Return the arguments of an LSTM, of which one keeps it off cuDNN where it runs in a loop."""
    return {
        "recurrent_dropout": 0.2 if run.network.recurrent == "loop" else 0.0, "unroll": False,
        "use_bias": True, "use_cudnn": "auto", "activation": "tanh", "recurrent_activation": "sigmoid",
    }  # fmt: skip


def _rows(steps: Iterable[Op], dtype: str) -> list[dict[str, Any]]:
    """Return the graph's operations; the inputs of each are the operation before it and its named source."""
    rows: list[dict[str, Any]] = []
    numbers: dict[str, int] = {}
    for op in steps:
        inputs = _inputs(op, dtype)
        sources: list[int | None] = [None] * len(inputs)
        sources[0] = len(rows) - 1 if rows else None
        sources[-1] = numbers.get(op.source, sources[-1])
        rows.append(
            {
                "name": op.name,
                "type": op.type,
                "inputs": inputs,
                "from": sources,
                "outputs": [_tensor(op.result, dtype)],
                "attrs": {},
                "at": [SCRIPT, op.line],
                "layer": layer_of(op) or None,
            }
        )
        numbers[op.name] = len(rows) - 1
    return rows


def _inputs(op: Op, dtype: str) -> list[tuple[str, list[int]]]:
    tensors = [_tensor(shape, dtype) for shape in op.operands]
    if op.kind in (Kind.CONVOLUTION, Kind.DEPTHWISE, Kind.SLOW) and "Backprop" in op.type:
        tensors.insert(1 if op.type.endswith("Filter") else 0, SIZES)
    return tensors


def _tensor(shape: Shape, dtype: str) -> tuple[str, list[int]]:
    return dtype, list(shape)
