"""A window without TensorFlow: its profiler only remembers, and its registry only counts."""

from tests.capture import agent
from tests.kit import *


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


def nothing(*_: object) -> None: ...


def registry() -> SimpleNamespace:
    """Return a registry that looks at nothing, and knows the lengths that it is told."""
    lengths = dict[object, int]()
    same = SimpleNamespace(describe=list, begin=nothing, end=nothing, rest=nothing)
    given = SimpleNamespace(**dict.fromkeys(("code", "noted", "feeds")), left=0, asks=False, prepare=nothing)
    given.begin = nothing
    found = SimpleNamespace(choices=same, unused_gradients=same, given=given, looped=nothing, lengths=lengths)
    found.dataset_key = lambda iterator: str(iterator.data)
    found.cardinality = lambda iterator: lengths.get(iterator.data, -2)
    return found


class ProgramFile(SimpleNamespace):
    """Remembers whether what it wrote was the last."""

    keep = forget = nothing

    def describe(self, *, last: bool) -> None:
        self.written.append(last)


def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **plan: Any) -> Any:
    log = agent.load("process.journal").Journal(str(tmp_path))
    options = {"out": str(tmp_path), "warmup": 10, "steps": 20, "stop_after": False, **plan}
    window = agent.load("window.window").TraceWindow(options, log, registry(), ProgramFile(written=[]))
    profiler = window.profiler = Profiler()
    monkeypatch.setattr(
        agent.load("process.tensorflow_api"), "of_tensorflow", lambda _: SimpleNamespace(Trace=profiler.trace)
    )
    return window


def source(window: Any, kind: str, *key: object) -> Any:
    """Return the counter of a loop by the name of its kind."""
    return window.source(agent.load("window.steps").StepKind(kind), *key)


def call(loop: Any, calls: int, k: int = 1) -> None:
    for _ in range(calls):
        if marker := loop.begin(k):
            marker.__exit__(None, None, None)


def run(window: Any, calls: int, k: int = 1, name: str = "keras-fit") -> list[tuple[int, int]]:
    """Make so many calls; return (number, steps) of those that were marked."""
    call(source(window, name), calls, k)
    return [(number, steps) for _, number, steps in window.profiler.marked]
