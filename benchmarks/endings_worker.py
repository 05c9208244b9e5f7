"""Short trainings that end while they are traced, for ``endings.py``: ``endings_worker.py HOW [WINDOWS]``."""

import os
import runpy
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import tensorflow as tf

STEPS = 12
"""More than the warm-up of the benchmark, fewer than the window's end."""

EXIT_CODE = 3


def protection() -> Any:
    """Return the agent's protection, loaded by path as the agent is."""
    import tfdoctor.capture  # not where TensorFlow is tried alone

    path = Path(tfdoctor.capture.__file__).parent / "agent" / "collectives.py"
    return SimpleNamespace(**runpy.run_path(str(path))).Unnumbered()


def reducing() -> Any:
    """Return a step of this worker that exchanges a sum with the other one eight times."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weights = [tf.Variable(tf.ones([20, 1])) for _ in range(8)]

    def replica() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_sum(weight**2) for weight in weights])
        context = tf.distribute.get_replica_context()
        gradients = tape.gradient(loss, weights)
        sums = [context.all_reduce("SUM", gradient) for gradient in gradients]
        return tf.add_n([tf.reduce_sum(total) for total in sums])

    return tf.function(lambda: strategy.run(replica))


def windows(count: int, guard: Any) -> None:
    """Start and stop TensorFlow's profiler so often, a few steps each time."""
    step = reducing()
    step()
    profiler = tf.profiler.experimental
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(count):
            guard.begin()
            profiler.start(folder)
            for _ in range(3):
                step()
            profiler.stop()
            guard.end()


class Unprotected:
    """Does nothing."""

    def begin(self) -> None:
        """Nothing to prepare."""

    def end(self) -> None:
        """Nothing to bring back."""


def alone() -> None:
    """Train a single worker for a few steps."""
    weight = tf.Variable(tf.ones([20, 1]))

    @tf.function
    def train(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weight) ** 2)
        weight.assign_sub(0.001 * tape.gradient(loss, weight))

    for _ in range(STEPS):
        train(tf.ones([16, 20]))


def end(how: str) -> None:
    """End this process while it is traced."""
    if how == "sys.exit":
        sys.exit(EXIT_CODE)
    if how == "os._exit":
        os._exit(EXIT_CODE)
    if how == "exception":
        raise RuntimeError("the script fails")
    if how == "thread":
        threading.Thread(target=time.sleep, args=(0.5,)).start()


if __name__ == "__main__":
    how = sys.argv[1]
    if how == "alone":
        windows(int(sys.argv[2]), Unprotected())
    elif how == "protected":
        windows(int(sys.argv[2]), protection())
    elif how == "collectives":
        step = reducing()
        for _ in range(STEPS):
            step()
    else:
        alone()
        end(how)
