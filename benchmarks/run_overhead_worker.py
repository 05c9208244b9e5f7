"""Works for so many seconds under the recorder of the run, which takes turns with none, and says what that costs.

``run_overhead.py`` runs this below ``tfdoctor profile --no-trace``, as
``python -m benchmarks.run_overhead_worker STYLE SECONDS RESULT.json``.
"""

import itertools
import json
import multiprocessing
import os
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

BLOCK_S = 1.0
"""How long a turn lasts: as long as what the recorder writes at once, short against the drift of a machine."""

SETTLED_S = 4.0
"""When turns begin: TensorFlow is loaded, and functions are traced."""

FORK_EVERY_S = 1.0

WIDTH = 640
"""Of the layers: steps of some 2 ms, the worst case for what is done in each of them."""


class Turns:
    """Told of each step until the time is over; has the recorder work in every other block of the steps."""

    def __init__(self, seconds: float) -> None:
        self.recorder: Any = sys.modules["_tfdoctor_agent"]._begun[0][1]  # noqa: SLF001 - its only handle
        self.begun = self.block = self.last = time.perf_counter()
        self.seconds, self.steps, self.on_s, self.cpu_s = seconds, 0, 0.0, 0.0
        self.on, self.times = True, list[float]()
        self.medians: dict[bool, list[float]] = {True: [], False: []}
        self.thread = self.recorder.clock.thread

    def step(self) -> bool:
        """A step is over; say whether to go on."""
        now = time.perf_counter()
        self.times.append(now - self.last)
        self.last = now
        self.steps += 1
        if now - self.block >= BLOCK_S and now - self.begun >= SETTLED_S:
            self._turn(now)
        return now - self.begun < self.seconds

    def _turn(self, now: float) -> None:
        self.medians[self.on].append(median(self.times) * 1e3)
        self.on_s += now - self.block if self.on else 0.0
        self.on = not self.on
        if self.on:
            self.recorder.clock.thread = self.thread  # the hooks work for this thread
            self.recorder.after_fork_in_parent()  # its thread starts
        else:
            self.recorder.before_fork()  # its thread ends, also while the script forks
            self.recorder.clock.thread = None
        self.times, self.block = [], time.perf_counter()
        self.last = self.block

    def told(self) -> dict[str, Any]:
        """Return the ms of a step in turns with and without the recorder, and what its thread took."""
        if not self.on:
            self._turn(time.perf_counter())
        pairs = list(zip(self.medians[True], self.medians[False], strict=False))
        file = self.recorder.file
        return {
            "seconds": time.perf_counter() - self.begun,
            "steps": self.steps,
            "step_ms": median(self.medians[False]) if self.medians[False] else None,
            "ratios": [with_it / without for with_it, without in pairs],
            "thread_share": self.recorder.cpu_s / max(1e-9, self.on_s + SETTLED_S),
            "bytes": file.size if file else 0,
        }


class TimeIsOverError(Exception):
    """Ends a fit within an epoch."""


def fit(turns: Turns) -> None:
    """Model.fit on arrays."""
    import keras

    layers = [keras.Input([WIDTH]), keras.layers.Dense(WIDTH), keras.layers.Dense(WIDTH)]
    model = keras.Sequential(layers)
    model.compile("sgd", "mse")
    x = np.random.default_rng(0).random((64 * 500, WIDTH), np.float32)

    class Steps(keras.callbacks.Callback):  # type: ignore[misc] # Keras has no types
        def on_train_batch_end(self, batch: int, logs: object = None) -> None:  # noqa: ARG002
            if not turns.step():
                raise TimeIsOverError

    try:
        model.fit(x, x, batch_size=64, epochs=10**6, verbose=0, callbacks=[Steps()])
    except TimeIsOverError:
        return


def training() -> Callable[[Any], None]:
    """Return a tf.function that trains."""
    import tensorflow as tf

    weights = [tf.Variable(tf.random.stateless_uniform([WIDTH, WIDTH], [i, 2])) for i in (0, 1)]

    @tf.function
    def train(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.tanh(x @ weights[0]) @ weights[1])
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(1e-6 * gradient)

    return train


def loop(turns: Turns, between: Callable[[], object] = lambda: None) -> None:
    """A loop over a tf.data dataset."""
    import tensorflow as tf

    train = training()
    x = np.random.default_rng(0).random((64, WIDTH), np.float32)
    for batch in tf.data.Dataset.from_tensors(x).repeat().prefetch(2):
        train(batch)
        between()
        if not turns.step():
            break


def prepare(turns: Turns) -> None:
    """Python that is no TensorFlow: words are counted."""
    import tensorflow  # noqa: F401, ICN001 - the script goes on to train

    words = Path(__file__).read_text().split()
    counted: Counter[str] = Counter()
    while turns.step():
        for word in words:
            counted[word.lower()] += len(word)


def made(number: int) -> Any:
    """Return a batch that takes Python a while to make."""
    values = [(number * i) % 97 / 97 for i in range(WIDTH)]
    return np.broadcast_to(np.array(values, np.float32), (64, WIDTH)).copy()


def fed(turns: Turns, get: Callable[[], Any]) -> None:
    """Train on batches that others make."""
    train = training()
    while turns.step():
        train(get())


def threads(turns: Turns) -> None:
    """A loop that eight threads of Python feed."""
    batches: queue.Queue[Any] = queue.Queue(16)

    def feed(first: int) -> None:
        for number in itertools.count(first):
            batches.put(made(number))

    for first in range(8):
        threading.Thread(target=feed, args=(first,), daemon=True).start()
    fed(turns, batches.get)


def forks(turns: Turns) -> None:
    """A loop that forks a child each second and waits for it."""
    due = [time.perf_counter() + FORK_EVERY_S]

    def between() -> None:
        if time.perf_counter() >= due[0]:
            due[0] += FORK_EVERY_S
            child = os.fork()
            if not child:
                os._exit(0)
            os.waitpid(child, 0)

    loop(turns, between)


def pool(turns: Turns) -> None:
    """A loop that a pool of two processes feeds."""
    with multiprocessing.get_context("spawn").Pool(2) as workers:
        fed(turns, iter(workers.imap(made, itertools.count(), chunksize=4)).__next__)


STYLES = {style.__name__: style for style in (fit, loop, prepare, threads, forks, pool)}


def main() -> None:
    """Work, measure, and write the result."""
    style, seconds, result = sys.argv[1:]
    turns = Turns(float(seconds))
    STYLES[style](turns)
    Path(result).write_text(json.dumps(turns.told()), encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)  # threads that feed do not end


if __name__ == "__main__":
    main()
