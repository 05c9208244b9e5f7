"""A window without TensorFlow: its profiler only remembers, and its registry only counts."""

from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.capture import agent


class Marker:
    def __init__(self, opened: list[Any], *stats: Any) -> None:
        opened.append(stats)
        self.closed = False

    def __exit__(self, *_: object) -> None:
        self.closed = True


class Session:
    """A profiler that only remembers, and leaves a file where the trace would be."""

    borrowed = False
    refuse: Exception | None = None
    marked: ClassVar[list[Any]] = []

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.stopped_ns: int | None = None
        self.finished: list[int] = []  # how many calls were marked by each end

    @classmethod
    def start(cls, _api: object, folder: str) -> "Session":
        if cls.refuse:
            raise cls.refuse
        cls.marked.clear()
        return cls(folder)

    def marker(self, name: str, number: int, k: int) -> Marker:
        return Marker(self.marked, name, number, k)

    def sampled(self, number: int, k: int) -> Marker:
        return Marker(self.marked, "sampled", number, k)

    def finish(self) -> None:
        self.finished.append(len(self.marked))
        self.stopped_ns = self.stopped_ns or 5

    def stop(self, _capture: object) -> None:
        run = self.folder / "plugins" / "profile" / "now"
        run.mkdir(parents=True)
        (run / "host.xplane.pb").write_text(self.folder.name)


class Nothing:
    def describe(self) -> list[dict[str, object]]:
        return []

    zero_rates = describe


class Registry:
    def __init__(self) -> None:
        self.lengths: dict[object, int] = {}
        self.choices = self.unused_gradients = Nothing()

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
    monkeypatch.setattr(agent.load("window.window_start"), "Session", Session)
    monkeypatch.setattr(Session, "refuse", None)
    Session.marked.clear()
    options = {"out": str(tmp_path), "warmup": 10, "steps": 20, "stop_after": False, **plan}
    window = agent.load("window.window").TraceWindow(options, log, Registry(), ProgramFile())
    window.profiler = object()
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
    return [(number, steps) for _, number, steps in Session.marked]
