"""Trains in one process, by turns with and without tfdoctor's hooks, and prints what each step took.

``overhead.py`` runs this; ``python -m benchmarks.overhead_worker outside loop 256`` prints JSON.
"""

import importlib.util
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median
from types import ModuleType
from typing import Any

import numpy as np

import tfdoctor.capture
from benchmarks.metered import plain, training

BLOCKS, BLOCK = 30, 60
"""How often to take turns, and for how many steps: long enough for a median, short against drift."""

WINDOWS = 25
"""How often to take turns inside the window, which has fewer steps."""

SETTLED = 400
"""Steps after which the hooks rest: the window, and 200 more whose time is taken."""

MOST_SAMPLED = 5
"""After a window, at most so many times its steps are traced for samples of the stack."""

TRACED = 20
"""Steps in a traced window: what `tfdoctor profile` takes."""

WARMUP = 3
"""Steps before a window: some, for the agent learns there what its calls are given."""


def load_agent() -> ModuleType:
    """Load the agent by path, under its private name."""
    folder = Path(tfdoctor.capture.__file__).parent / "agent"
    spec = importlib.util.spec_from_file_location(
        "_tfdoctor_agent", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise SystemExit(f"no agent in {folder}")
    agent = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(agent)
    return agent


def hook(steps: int) -> Any:
    """Install the agent as `tfdoctor profile` does, before TensorFlow, and return its window."""
    agent = load_agent()
    out = tempfile.mkdtemp()
    plan = {"out": out, "steps": steps, "warmup": WARMUP, "stop_after": False, "seconds": None}
    parts = agent.install(plan)
    parts.recorder.begin()  # the account of the run, which each recording has
    return parts.window


@contextmanager
def unhooked() -> Iterator[None]:
    """Put TensorFlow's own functions back for a while."""
    from tensorflow.python.data.ops.iterator_ops import OwnedIterator
    from tensorflow.python.eager.backprop import GradientTape
    from tensorflow.python.eager.polymorphic_function.concrete_function import ConcreteFunction
    from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function

    patched = [
        (OwnedIterator, "__next__"),
        (GradientTape, "gradient"),
        (Function, "__call__"),
        (ConcreteFunction, "_call_flat"),
    ]
    originals = [(kind, name, getattr(kind, name)) for kind, name in patched]
    for kind, name, function in originals:
        setattr(kind, name, plain(function))
    try:
        yield
    finally:
        for kind, name, function in originals:
            setattr(kind, name, function)


class Loop:
    """A training loop over tf.data, over NumPy arrays, or eager, that runs so many steps at a time."""

    def __init__(self, style: str, width: int) -> None:
        import tensorflow as tf

        self.x = np.random.default_rng(0).random((64, width), np.float32)
        train = training(width)
        self.train: Callable[[Any], None] = train if style == "eager" else tf.function(train)
        dataset = tf.data.Dataset.from_tensors(self.x).repeat().prefetch(2)
        self.batches = iter(dataset) if style == "loop" else None

    def steps(self, count: int) -> list[float]:
        """Run so many steps and return what each took, in ms."""
        times = [time.perf_counter()]
        for _ in range(count):
            self.train(next(self.batches) if self.batches else self.x)
            times.append(time.perf_counter())
        return [float(ms) for ms in np.diff(times) * 1e3]


class Fit:
    """Model.fit, whose train function is exchanged between epochs."""

    def __init__(self, width: int) -> None:
        import keras

        layers = [keras.Input([width]), keras.layers.Dense(width), keras.layers.Dense(width)]
        self.model = keras.Sequential(layers)
        self.model.compile("sgd", "mse")
        self.x = np.random.default_rng(0).random((64 * BLOCK, width), np.float32)

    def alternate(self, blocks: int, before: Callable[[int, Any], None]) -> list[list[float]]:
        """Fit so many epochs; `before` may change the model at the beginning of each."""
        import keras

        times: list[list[float]] = []
        at: list[float] = []

        class Turns(keras.callbacks.Callback):  # type: ignore[misc] # Keras has no types
            def on_epoch_begin(self, epoch: int, logs: object = None) -> None:  # noqa: ARG002
                before(epoch, self.model)
                at.clear()

            def on_train_batch_end(self, batch: int, logs: object = None) -> None:  # noqa: ARG002
                at.append(time.perf_counter())

            def on_epoch_end(self, epoch: int, logs: object = None) -> None:  # noqa: ARG002
                times.append([float(ms) for ms in np.diff(at) * 1e3])

        self.model.fit(self.x, self.x, batch_size=64, epochs=blocks, verbose=0, callbacks=[Turns()])
        return times


def outside(style: str, width: int) -> list[tuple[float, float]]:
    """Return (with hooks, without) of neighbouring blocks, in ms a step, after the traced window."""
    hook(steps=1)
    if style == "fit":
        return _outside_fit(width)
    loop = Loop(style, width)
    loop.steps(SETTLED)
    pairs = []
    for _ in range(BLOCKS):
        hooked = median(loop.steps(BLOCK))
        with unhooked():
            pairs.append((hooked, median(loop.steps(BLOCK))))
    return pairs


def _outside_fit(width: int) -> list[tuple[float, float]]:
    functions: list[Any] = []
    settled = SETTLED // BLOCK  # epochs, an even number

    def before(epoch: int, model: Any) -> None:
        if not functions:
            marked = model.train_function
            functions.extend([marked, plain(marked)])
        model.train_function = functions[epoch % 2 if epoch >= settled else 0]

    times = Fit(width).alternate(2 * BLOCKS + settled, before)
    blocks = [median(block) for block in times[settled:]]
    return list(zip(blocks[::2], blocks[1::2], strict=True))


def inside(style: str, width: int) -> list[tuple[float, float]]:
    """Return (our window, TensorFlow's profiler alone) by turns, in ms a step."""
    window = hook(steps=TRACED)
    loop = Loop(style, width)
    loop.steps(TRACED * (2 + MOST_SAMPLED))
    pairs = []
    for _ in range(WINDOWS):
        loop.steps(BLOCK)  # what was written is on its way to the disk
        ours = _window(window, loop)
        with unhooked():
            loop.steps(BLOCK)
            window.profiler.start(tempfile.mkdtemp())
            bare = mean(loop.steps(TRACED)[1:])
            window.profiler.stop()
        pairs.append((ours, bare))
    return pairs


def _window(window: Any, loop: Loop) -> float:
    """Trace one window as if it were the first, and return the mean of its steps."""
    window.state, window.kept, window.captures = type(window.state)("waiting"), None, 0
    window.sources.clear()
    times = loop.steps(TRACED * (2 + MOST_SAMPLED))[WARMUP:]  # after TRACED, for samples of the stack
    if window.kept is None or window.kept.record["steps"] != TRACED:
        raise SystemExit(f"no window was traced: {window.log.state}")
    return mean(times[1:TRACED])  # in the first, the profiler starts; few are sampled, so no median


def program(name: str) -> dict[str, float]:
    """Return what it costs to describe a large model, after one step of training."""
    window = hook(steps=1)
    import keras

    model, x, y = (resnet if name == "resnet50" else transformer)(keras)
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(x, y, batch_size=2, epochs=1, verbose=0)
    registry = window.registry
    registry.written = False
    begun = time.process_time()
    window.program.describe(last=True)
    path = Path(window.log.out, "program.json.gz")
    return {
        "seconds": time.process_time() - begun,
        "bytes": path.stat().st_size,
        "operations": sum(len(g().get_operations()) for g in registry.graphs if g() is not None),
    }


def resnet(keras: Any) -> tuple[Any, Any, Any]:
    """Return ResNet50 with small images, and a batch."""
    model = keras.applications.ResNet50(weights=None, input_shape=(64, 64, 3), classes=10)
    return model, np.zeros((2, 64, 64, 3), "float32"), np.zeros(2, "int64")


def transformer(keras: Any, layers: int = 12, width: int = 128) -> tuple[Any, Any, Any]:
    """Return a text classifier of so many transformer layers, and a batch."""
    tokens = keras.Input([32], dtype="int32")
    x = keras.layers.Embedding(1000, width)(tokens)
    for _ in range(layers):
        x = keras.layers.LayerNormalization()(x + keras.layers.MultiHeadAttention(4, width // 4)(x, x))
        inner = keras.layers.Dense(4 * width, activation="gelu")(x)
        x = keras.layers.LayerNormalization()(x + keras.layers.Dense(width)(inner))
    out = keras.layers.Dense(10, activation="softmax")(keras.layers.GlobalAveragePooling1D()(x))
    return keras.Model(tokens, out), np.zeros((2, 32), "int32"), np.zeros(2, "int64")


def main() -> None:
    """Run one measurement and print it."""
    kind, name, *width = sys.argv[1:]
    measure = {"outside": outside, "inside": inside, "program": program}[kind]
    print(json.dumps(measure(name, *map(int, width))))  # type: ignore[operator] # the kinds differ in arguments
    sys.stdout.flush()
    os._exit(0)  # the agent's handlers have nothing to add


if __name__ == "__main__":
    main()
