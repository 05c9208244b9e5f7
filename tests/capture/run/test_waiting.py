"""What a thread waits for: for children of any thread of the process, or for the thread that works meanwhile."""

from tests.capture.run.kit import *

waiting: Any = agent.load("run.waiting")


@cases(
    ({1: 90, 2: 20, 3: 30}, 3),  # most of all but the first, which waits
    ({1: 0, 2: 9, 3: 8}, None),  # little
    ({1: 0, 2: 0, 3: 0, 4: 50}, 4),  # new
    ({1: 50}, None),  # the others have ended
)
def test_the_thread_that_works_most_is_found(
    worked: dict[int, int], found: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Percent of the time since the last look."""
    now = {1: 7, 2: 7, 3: 7}
    monkeypatch.setattr(waiting, "started", lambda: {n: SimpleNamespace(native_id=n) for n in now})
    monkeypatch.setattr(waiting, "worked_ns", lambda number: now[number] * 1_000_000)
    cpu = waiting.CPUTimes()
    cpu.working(1, 1_000_000_000)
    now = {number: now.get(number, 0) + ms for number, ms in worked.items()}
    assert cpu.working(1, 1_100_000_000) == found


@cases(
    (0, 0, 1, True),
    (5, 5, 1, True),
    (90, 0, 1, False),  # threads that TensorFlow has started
    (5, 90, 1, False),  # waits for a core, on a busy machine
    (0, 0, 0, False),
)
def test_a_process_that_hardly_works_awaits_its_children(
    process: int, thread: int, children: int, awaits: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Percent of the time since the last sample that the process ran, and that a thread ran or was ready to."""
    worked, used = iter([7, 7 + thread * MS]), iter([3 * MS, (3 + process) * MS])
    clock = SimpleNamespace(process_time_ns=lambda: next(used), thread_time_ns=lambda: 3 * MS)
    parts = {"started": lambda: {1: threading.Thread()}, "worked_ns": lambda _: next(worked), "time": clock}
    for name, part in (parts | {"has_children": lambda: bool(children)}).items():
        monkeypatch.setattr(waiting, name, part)
    cpu = waiting.CPUTimes()
    cpu.awaits_children(100 * MS, 1_000 * MS)
    assert cpu.awaits_children(100 * MS, 1_100 * MS) == awaits


def test_what_a_thread_has_worked_is_read_from_linux() -> None:
    until, before = time.thread_time() + 0.1, waiting.worked_ns(threading.get_native_id())
    while time.thread_time() < until:
        pass
    assert waiting.worked_ns(threading.get_native_id()) - before >= 90_000_000
    assert waiting.worked_ns(None) == 0


def until(met: Callable[[], bool]) -> None:
    """Wait until it is so, or for 10 s."""
    deadline = time.monotonic() + 10
    while not met() and time.monotonic() < deadline:
        time.sleep(0.01)


def test_a_child_that_has_ended_is_none_and_keeps_its_code() -> None:
    before = waiting.children()
    process = subprocess.Popen([sys.executable, "-I", "-c", "raise SystemExit(7)"])
    until(lambda: waiting.children() == before)
    assert waiting.children() == before
    assert waiting.has_children() == (before > 0)
    assert process.wait() == 7


def test_threads_of_tensorflow_are_not_the_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    class Replica(threading.Thread):
        __module__ = "tensorflow.python.distribute.mirrored_run"

    dummy = object.__new__(threading._DummyThread)  # noqa: SLF001 - has no public name
    found = {1: Replica(), 2: dummy, 3: threading.Thread()}
    monkeypatch.setattr(waiting, "started", lambda: found)
    assert [waiting.is_of_script(number) for number in range(5)] == [False] * 3 + [True, False]
