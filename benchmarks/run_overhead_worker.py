"""Works for so many seconds under the recorder of the run, and measures what that takes of them.

``run_overhead.py`` runs this below ``tfdoctor profile --no-trace``, as
``python -m benchmarks.run_overhead_worker STYLE SECONDS RESULT.json``. With ``alternate`` at the end,
recorder and hooks take turns with TensorFlow alone.
"""

import itertools
import json
import multiprocessing
import os
import queue
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from benchmarks.metered import Meter, training

BLOCK_S = 2.0
"""How long a turn lasts: about two of what the recorder writes, short against the drift of a machine."""

SETTLED_S = 15.0
"""When turns begin: TensorFlow is loaded, functions are traced, and the first seconds' denser samples are over."""

WITHOUT = 1024
"""Steps without hooks at the end of a run that does not alternate, for the meters."""

FORK_EVERY_S, TIMED_FORKS = 1.0, 50
"""How often the script forks, and how many stops for a fork are timed afterwards."""

FIT_WIDTH, WIDTH, USUAL_WIDTH = 640, 800, 2000
"""Of the layers of Keras' fit, and of the loops: steps of some 2 ms, the worst case for hooks, and of some 10."""


class Recording:
    """The recorder in this process, which a measurement may stop and start, and the CPU time of its thread."""

    def __init__(self) -> None:
        self.recorder: Any = sys.modules["_tfdoctor_agent"]._begun[0][1]  # noqa: SLF001
        self.cpu_s, self.meters = 0.0, list[Meter]()
        self.turn(on=False)
        run = self.recorder._run  # noqa: SLF001

        def timed(*locks: Any) -> None:
            try:
                run(*locks)
            finally:
                self.cpu_s += time.thread_time()

        self.recorder._run = timed  # noqa: SLF001
        self.turn(on=True)

    def meter(self, owner: Any, *names: str) -> None:
        """Measure the hooks of some functions from now on."""
        self.meters += [Meter(owner, name) for name in names]

    def turn(self, *, on: bool) -> None:
        """Record from now on, or have TensorFlow alone."""
        self.recorder.active = on
        if on:
            self.recorder._start()  # noqa: SLF001
        else:
            self.recorder._stop(5.0)  # noqa: SLF001
        for meter in self.meters:
            meter.turn(on=on)

    def fork_us(self) -> float:
        """Return what a fork waits for the recorder's thread to end and to start again."""
        times = []
        for _ in range(TIMED_FORKS):
            begun = time.perf_counter()
            self.recorder.before_fork()
            self.recorder.after_fork_in_parent()
            times.append(time.perf_counter() - begun)
            time.sleep(0.01)
        return median(times) * 1e6

    def bytes(self) -> int:
        """Return how much was written for good so far."""
        file = self.recorder.file
        return 0 if file is None else file.size


class Measurement:
    """Told of each step, until enough time has passed."""

    def __init__(self, seconds: float, *, alternate: bool) -> None:
        self.begun, self.seconds, self.alternate = time.perf_counter(), seconds, alternate
        self.recording = Recording()
        self.on, self.forks, self.steps, self.left = True, 0, 0, WITHOUT
        self.times: list[float] = []
        self.blocks: list[dict[str, float]] = []
        self.half: tuple[float, int] | None = None  # the moment when half is over, and the bytes by then
        self.result: dict[str, Any] = {}
        self._next(self.begun)

    def _next(self, now: float) -> None:
        self.times, self.block, self.cpu, self.last = [], now, time.process_time(), now

    def step(self) -> bool:
        """A step is over; say whether to go on."""
        now = time.perf_counter()
        self.times.append(now - self.last)
        self.last = now
        if self.result:
            self.left -= 1
            return self.left > 0
        self.steps += 1
        if now - self.block >= BLOCK_S:
            self._block_over(now)
        return not self.result or self.left > 0

    def _block_over(self, now: float) -> None:
        age = now - self.begun
        if age >= SETTLED_S or not self.alternate:
            cpu = time.process_time() - self.cpu
            self.blocks.append(
                {
                    "on": self.on,
                    "median": median(self.times) * 1e3,
                    "mean": fmean(self.times) * 1e3,
                    "cpu": cpu / len(self.times) * 1e3,
                }
            )
        if self.half is None and age >= self.seconds / 2:
            self.half = now, self.recording.bytes()
        if age >= self.seconds:
            self._over(now)
        elif age >= SETTLED_S and self.alternate:
            self.on = not self.on
            self.recording.turn(on=self.on)
        self._next(time.perf_counter())

    def _over(self, now: float) -> None:
        recording = self.recording
        if self.on:
            recording.turn(on=False)
        self.left = 0 if self.alternate or not recording.meters else WITHOUT
        half, before = self.half or (self.begun, 0)
        self.result = {
            "seconds": now - self.begun,
            "steps": self.steps,
            "sampler_cpu_s": recording.cpu_s,
            "forks": self.forks,
            "bytes": recording.bytes(),
            "bytes_a_minute": (recording.bytes() - before) / max(1e-9, now - half) * 60,
            "blocks": self.blocks,
        }

    def told(self) -> dict[str, Any]:
        """Return all that was measured."""
        recording = self.recording
        recording.turn(on=True)
        hooks = {meter.name: meter.us() for meter in recording.meters}
        return {**self.result, "hooks_us": hooks, "fork_us": recording.fork_us()}


# What the scripts do


class Over(Exception):  # noqa: N818 # no error: it ends a fit
    """The measurement is over."""


def fit(measurement: Measurement) -> None:
    """Model.fit on arrays."""
    import keras

    layers = [keras.Input([FIT_WIDTH]), keras.layers.Dense(FIT_WIDTH), keras.layers.Dense(FIT_WIDTH)]
    model = keras.Sequential(layers)
    model.compile("sgd", "mse")
    x = np.random.default_rng(0).random((64 * 500, FIT_WIDTH), np.float32)
    hooks(measurement)

    class Steps(keras.callbacks.Callback):  # type: ignore[misc] # Keras has no types
        def on_train_batch_end(self, batch: int, logs: object = None) -> None:  # noqa: ARG002
            model.stop_training = stop = not measurement.step()
            if stop:
                raise Over

        def on_epoch_end(self, epoch: int, logs: object = None) -> None:  # noqa: ARG002
            if not epoch:
                measurement.recording.meter(model, "train_function")

    try:
        model.fit(x, x, batch_size=64, epochs=10**6, verbose=0, callbacks=[Steps()])
    except Over:
        return


def hooks(measurement: Measurement) -> None:
    """Meter what each training calls."""
    from tensorflow.python.eager.polymorphic_function.concrete_function import ConcreteFunction
    from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function

    measurement.recording.meter(Function, "__call__")
    measurement.recording.meter(ConcreteFunction, "_call_flat")


def loop(measurement: Measurement, between: Callable[[], object] = lambda: None, width: int = WIDTH) -> None:
    """A custom loop over a tf.data dataset."""
    import tensorflow as tf
    from tensorflow.python.data.ops.iterator_ops import OwnedIterator

    train = tf.function(training(width))
    x = np.random.default_rng(0).random((64, width), np.float32)
    hooks(measurement)
    measurement.recording.meter(OwnedIterator, "__next__")
    for batch in tf.data.Dataset.from_tensors(x).repeat().prefetch(2):
        train(batch)
        between()
        if not measurement.step():
            break


def usual(measurement: Measurement) -> None:
    """A custom loop whose steps take some 10 ms."""
    loop(measurement, width=USUAL_WIDTH)


WORDS = re.compile(r"\w+")


def prepare(measurement: Measurement) -> None:
    """Python that is no TensorFlow: text that is split, counted, and written as JSON."""
    import tensorflow  # noqa: F401, ICN001 # the script goes on to train

    text = Path(__file__).read_text()
    counted: Counter[str] = Counter()
    while True:
        for line in text.splitlines():
            counted.update(word.lower() for word in WORDS.findall(line))
        rows = [{"word": word, "count": count} for word, count in counted.most_common(100)]
        json.loads(json.dumps(rows, indent=1))
        if not measurement.step():
            break


def made(number: int) -> Any:
    """Return a batch that takes Python a while to make."""
    values = [(number * i) % 97 / 97 for i in range(WIDTH)]
    return np.broadcast_to(np.array(values, np.float32), (64, WIDTH)).copy()


def threads(measurement: Measurement) -> None:
    """A loop that eight threads of Python feed."""
    batches: queue.Queue[Any] = queue.Queue(16)

    def feed(first: int) -> None:
        for number in itertools.count(first):
            batches.put(made(number))

    for first in range(8):
        threading.Thread(target=feed, args=(first,), daemon=True).start()
    _fed(measurement, batches.get)


def forks(measurement: Measurement) -> None:
    """A custom loop that forks a child each second and waits for it."""
    due = [time.perf_counter() + FORK_EVERY_S]

    def between() -> None:
        if time.perf_counter() >= due[0]:
            due[0] += FORK_EVERY_S
            measurement.forks += 1
            child = os.fork()
            if not child:
                sum(range(10_000))
                os._exit(0)
            os.waitpid(child, 0)

    loop(measurement, between)


def pool(measurement: Measurement) -> None:
    """A loop that a pool of two processes feeds."""
    with multiprocessing.get_context("spawn").Pool(2) as workers:
        batches = iter(workers.imap(made, range(200), chunksize=4))

        def get() -> Any:
            nonlocal batches
            batch = next(batches, None)
            if batch is None:
                batches = iter(workers.imap(made, range(200), chunksize=4))
                batch = next(batches)
            return batch

        _fed(measurement, get)


def _fed(measurement: Measurement, get: Callable[[], Any]) -> None:
    import tensorflow as tf

    train = tf.function(training(WIDTH))
    hooks(measurement)
    while True:
        train(get())
        if not measurement.step():
            break


STYLES = {style.__name__: style for style in (fit, loop, usual, prepare, threads, forks, pool)}


def main() -> None:
    """Work, measure, and write the result."""
    style, seconds, result, *more = sys.argv[1:]
    measurement = Measurement(float(seconds), alternate="alternate" in more)
    STYLES[style](measurement)
    Path(result).write_text(json.dumps(measurement.told()))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
