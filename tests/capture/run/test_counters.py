"""Counters: cheap, whatever the heap and the system are like."""

from tests.capture.run.kit import *

counters = agent.load("run.counters")


def counted() -> Any:
    return counters.Counters(SimpleNamespace(graph=12, functions=3))


every = pytest.fixture(counted)


def test_what_grows_is_read(every: Any) -> None:
    found = every.read()
    assert (found["graph"], found["functions"], "device" in found) == (12, 3, False)
    assert 5_000_000 < found["rss"] < 10**12
    assert found["blocks"] == pytest.approx(sys.getallocatedblocks(), rel=0.2)
    assert found["files"] >= 3
    assert found["children"] >= 0


def test_memory_is_reserved_before_it_is_written_and_files_are_those_of_the_process() -> None:
    before = counted().read()
    with contextlib.ExitStack() as files:
        for _ in range(40):
            files.enter_context(Path(__file__).open())
        block = np.zeros(60_000_000, np.uint8)
        empty = counted().read()
        block[:] = 1
        full = counted().read()
    assert full["files"] - before["files"] == 40
    assert empty["data"] - before["data"] > 50_000_000
    assert empty["rss"] - before["rss"] < 10_000_000
    assert full["rss"] - empty["rss"] > 50_000_000
    assert full["data"] - empty["data"] < 10_000_000


# Counters that take long


@pytest.fixture
def takes(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], int]:
    """What takes so many s of a processor, and returns 7."""
    spent: list[float] = []

    def take(seconds: float) -> int:
        spent.append(seconds)
        return 7

    monkeypatch.setattr(counters.time, "thread_time", lambda: sum(spent))
    return take


def test_a_counter_that_takes_long_is_read_rarely(takes: Callable[[float], int]) -> None:
    calls: list[int] = []

    def read() -> int:
        calls.append(takes(0.002))
        return len(calls)

    paced = counters.Paced(read)
    seen = [paced.read(at / 10) for at in range(1000)]
    assert len(calls) in (100 // 10, 100 // 10 - 1)
    assert (seen[0], seen[-1]) == (1, len(calls))


def test_a_counter_that_fails_is_asked_no_more(every: Any) -> None:
    calls: list[int] = []

    def read() -> int:
        calls.append(1)
        raise RuntimeError("no statistics")

    every.paced["device"] = counters.Paced(read)
    for _ in range(3):
        found = every.read()
        assert ("device" in found, "rss" in found) == (False, True)
    assert calls == [1]


def test_a_value_of_an_earlier_bucket_is_not_told_again(every: Any, takes: Callable[[float], int]) -> None:
    every.paced["blocks"] = counters.Paced(lambda: takes(0.01))
    assert every.read()["blocks"] == 7
    now = time.perf_counter()
    assert ["blocks" in every.read(now + later) for later in (-5, 5)] == [True, False]


# Live objects


class Kept:
    """An object of the user's."""


def test_live_objects_are_counted_by_type() -> None:
    before = counters.named(counters.live_types()).get(f"{__name__}.Kept", 0)
    kept = [Kept() for _ in range(100_000)]
    types = counters.named(counters.live_types())
    assert types[f"{__name__}.Kept"] == before + len(kept)
    assert len(types) <= counters.MOST_TYPES


def test_objects_are_counted_where_memory_grows(every: Any) -> None:
    assert [every.census(at) for at in (5.0, 100.0, 200.0)] == [None] * 3  # it begins, begins, has not grown
    every.blocks = int(every.blocks / 2)
    every.paced["blocks"].due = 0.0
    assert every.census(300.0)
    assert every.census(301.0) is None
    assert every.census(400.0, last=True)


def test_objects_are_not_counted_at_the_end_of_a_run_that_never_grew(every: Any) -> None:
    every.census(100.0)
    assert every.census(200.0, last=True) is None


def test_counting_takes_its_share_of_the_run(every: Any) -> None:
    every.paced["blocks"] = counters.Paced(lambda: 10_000_000)  # 1 s to count, as it seems
    every.census(20.0)
    every.blocks = 1
    assert [bool(every.census(at)) for at in (400.0, 600.0)] == [False, True]
    every.blocks, every.spent, every.each = 1, 1.0, 1.0
    assert [bool(every.census(at)) for at in (900.0, 1100.0)] == [False, True]


def test_counting_does_not_break_a_tuple_that_another_thread_fills() -> None:
    """With `collections.Counter(map(type, gc.get_objects()))` this fails within a second."""
    failed: list[BaseException] = []
    over = threading.Event()

    def fill() -> None:
        while not over.is_set():
            try:
                assert len(tuple(slowly())) == 3000
            except SystemError as error:
                failed.append(error)

    def slowly() -> Any:
        for _ in range(3000):
            yield [0]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread = threading.Thread(target=fill)
    thread.start()
    try:
        kept: list[list[int]] = [[] for _ in range(100_000)]
        for _ in range(8):
            counters.live_types()
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(before)
    assert failed == []
    assert len(kept) == 100_000


def test_counting_leaves_nothing_behind() -> None:
    counters.live_types()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(5):
        counters.live_types()
    assert abs(len(gc.get_objects()) - before) < 50
