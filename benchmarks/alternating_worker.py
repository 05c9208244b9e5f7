"""Trains two Keras scripts by turns, a step each, and prints the ms of the steps of each as JSON.

``python alternating_worker.py SECONDS SCRIPT CHANGED-SCRIPT [ARGUMENT ...]``. Both run in one process, each in a
thread, so that what else the host computes meets both alike. `fit` gets no validation, and ends after that time.
"""

import json
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import keras

WARM = 5
"""Steps before the time begins: Keras traces a step more than once, which takes a large model half a minute."""


class Turns:
    """Whose turn it is, and what the steps took, in ms."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.end = seconds, float("inf")
        self.gates = threading.Semaphore(1), threading.Semaphore(0)
        self.times: tuple[list[float], list[float]] = ([], [])

    def pass_on(self, number: int) -> None:
        """Let the other one take its step; the time begins when both are warm."""
        if self.end == float("inf") and min(map(len, self.times)) >= WARM:
            self.end = time.monotonic() + self.seconds
        self.gates[1 - number].release()

    def train(self, number: int, script: Path) -> None:
        """Run a script; the second begins when the first has taken a step, so that neither disturbs the other."""
        try:
            with self.gates[number]:
                Turn.beginning.turn = Turn(self, number)
            exec(compile(script.read_text("utf-8"), script, "exec"), {"__name__": "__main__"})  # noqa: S102 - a script of the gallery
        finally:
            self.end = 0.0
            self.pass_on(number)


class Turn(keras.callbacks.Callback):  # type: ignore[misc] # Keras has no types
    """Makes a training wait for its turn, and times its steps."""

    beginning = threading.local()  # of a thread: its turn

    def __init__(self, turns: Turns, number: int) -> None:
        super().__init__()
        self.turns, self.number, self.began = turns, number, 0.0
        self.holds = False  # also after a step for which there was no batch, at the end of an epoch

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002 - Keras' signature
        """Wait."""
        if not self.holds:
            self.turns.gates[self.number].acquire()
            self.holds = True
        self.began = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002 - Keras' signature
        """Note the time."""
        self.turns.times[self.number].append(1e3 * (time.perf_counter() - self.began))
        self.model.stop_training = time.monotonic() > self.turns.end
        self.holds = False
        self.turns.pass_on(self.number)


def by_turns(fit: Callable[..., object]) -> Callable[..., object]:
    """Return `fit` with a turn, without an end of its own."""

    def fitted(model: object, *args: object, **given: object) -> object:
        changed = {"epochs": 10**6, "verbose": 0, "validation_data": None}
        return fit(model, *args, **{**given, **changed}, callbacks=[Turn.beginning.turn])

    return fitted


def main() -> None:
    """Run both scripts."""
    seconds, *scripts = float(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    sys.argv = [sys.argv[2], *sys.argv[4:]]
    keras.Model.fit = by_turns(keras.Model.fit)
    turns = Turns(seconds)
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(turns.train, *one) for one in enumerate(scripts)]:
            done.result()
    print(json.dumps(turns.times))


if __name__ == "__main__":
    main()
