"""A window without TensorFlow: its profiler only remembers, and its registry only counts."""

import contextlib
from pathlib import Path
from typing import Any

import pytest

from tests.capture import agent


class Profiler:
    """TensorFlow's profiler and its markers: it only remembers, and leaves a file where the trace would be."""

    def __init__(self) -> None:
        self.refuse: Exception | None = None
        self.folder: Path | None = None
        self.marked: list[tuple[str, int, int]] = []  # since the last start: name, number and steps of each call
        self.finished: list[int] = []  # how many calls were marked by each end

    def running(self) -> bool:
        return self.folder is not None

    def start(self, folder: str) -> None:
        if self.refuse:
            raise self.refuse
        self.marked.clear()
        self.finished.clear()
        self.folder = Path(folder)

    def stop(self) -> None:
        assert self.folder is not None
        run = self.folder / "plugins" / "profile" / "now"
        run.mkdir(parents=True)
        (run / "host.xplane.pb").write_text(self.folder.name)
        self.folder = None

    def trace(self, text: str, *, step_num: int = 0, steps: int = 0) -> contextlib.nullcontext[None]:
        name, _, stats = text.removesuffix("#").partition("#")
        if name == "tfdoctor_end":
            self.finished.append(len(self.marked))
        else:
            given = dict(stat.split("=") for stat in stats.split(",") if stat)
            self.marked.append((name, int(given.get("step_num", step_num)), int(given.get("steps", steps))))
        return contextlib.nullcontext()


class Nothing:
    def describe(self) -> list[dict[str, object]]:
        return []

    zero_rates = describe

    def begin(self) -> None: ...

    def end(self) -> None: ...

    def rest(self) -> None: ...


class Given:
    """Looks at nothing."""

    left, asks, code, noted, feeds = 0, False, None, None, None

    def prepare(self, _: object) -> None: ...

    begin = prepare


class Registry:
    def __init__(self) -> None:
        self.lengths: dict[object, int] = {}
        self.choices = self.unused_gradients = Nothing()
        self.given = Given()

    def looped(self, iterator: object) -> None: ...

    def dataset_key(self, iterator: Any) -> str:
        return str(iterator.data)

    def cardinality(self, iterator: Any) -> int:
        return self.lengths.get(iterator.data, -2)


class ProgramFile:
    def __init__(self) -> None:
        self.written: list[bool] = []

    def describe(self, *, last: bool) -> None:
        self.written.append(last)

    def keep(self) -> None: ...

    def forget(self) -> None: ...


def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **plan: Any) -> Any:
    log = agent.load("process.journal").Journal(str(tmp_path))
    options = {"out": str(tmp_path), "warmup": 10, "steps": 20, "stop_after": False, **plan}
    window = agent.load("window.window").TraceWindow(options, log, Registry(), ProgramFile())
    profiler = window.profiler = Profiler()
    monkeypatch.setattr(agent.load("process.tensorflow_api"), "trace_class", lambda: profiler.trace)
    return window


def source(window: Any, kind: str, *key: object) -> Any:
    """Return the counter of a loop by the name of its kind."""
    return window.source(agent.load("window.steps").StepKind(kind), *key)


def run(window: Any, calls: int, k: int = 1, name: str = "keras-fit") -> list[tuple[int, int]]:
    """Make so many calls; return (number, steps) of those that were marked."""
    loop = source(window, name)
    for _ in range(calls):
        marker = loop.begin(k)
        if marker is not None:
            marker.__exit__(None, None, None)
    return [(number, steps) for _, number, steps in window.profiler.marked]
