"""A plain timer of the phases of a program, without tfdoctor: what the accounts of runs are compared with.

Programs that use it say where a phase begins (``_T``), or that one lies within another one (``_push``, ``_pop``).
Calls of ``fit``, ``evaluate`` and ``predict`` of Keras are timed by themselves.
"""

import atexit
import functools
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

VARIABLE = "PHASE_TIMER_OUT"
"""The environment variable that names the file for the seconds of each phase."""


class Timer:
    """Adds up the seconds of the phase that is under way: the innermost one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.under_way = ["imports"]
        self.last = time.perf_counter()
        self.patched = False

    def add(self) -> None:
        """Add the time since the last change to the phase under way."""
        now = time.perf_counter()
        phase = self.under_way[-1]
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self.last
        self.last = now

    def begin(self, phase: str) -> None:
        """Begin a phase in place of the one under way."""
        self.add()
        self.under_way[-1] = phase
        self.patch()

    def push(self, phase: str) -> None:
        """Begin a phase within the one under way."""
        self.add()
        self.under_way.append(phase)
        self.patch()

    def pop(self) -> None:
        """End the phase under way."""
        self.add()
        self.under_way.pop()

    def patch(self) -> None:
        """Time the calls of Keras, once it is imported."""
        if self.patched or "keras" not in sys.modules:
            return
        self.patched = True
        model: Any = sys.modules["keras"].Model
        phases = {"fit": "training", "evaluate": "evaluation", "predict": "prediction"}
        for name, phase in phases.items():
            setattr(model, name, self.timed(getattr(model, name), phase))

    def timed(self, method: Callable[..., Any], phase: str) -> Callable[..., Any]:
        """Return a method that is a phase of its own, unless it runs between epochs or in an evaluation."""

        @functools.wraps(method)
        def call(*args: Any, **options: Any) -> Any:
            self.push(phase)
            try:
                return method(*args, **options)
            finally:
                self.pop()

        return call

    def write(self) -> None:
        """Write the seconds of all phases."""
        self.add()
        if out := os.environ.get(VARIABLE):
            Path(out).write_text(json.dumps(self.seconds), encoding="utf-8")


timer = Timer()
atexit.register(timer.write)
_T, _push, _pop = timer.begin, timer.push, timer.pop
