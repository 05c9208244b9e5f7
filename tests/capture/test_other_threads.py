"""Stacks of other threads are read while those threads go on, and Python survives it."""

import concurrent.futures
import weakref

import tfdoctor.capture
from tests.capture.kit import *
from tests.capture.running import ended

SCRIPT = Path(__file__).parents[1] / "e2e" / "scripts" / "sampled_threads.py"

AGENT = Path(tfdoctor.capture.__file__).parent / "agent"


class Batch:
    """What a variable of a function refers to."""


all_threads: Any = agent.load("process.all_threads")


def read(caller: int) -> bool:
    with all_threads.OtherThreads() as stacks:
        return caller in stacks and not gc.isenabled()


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    yield
    gc.enable()


def test_the_collector_is_as_it_was() -> None:
    for change, enabled in ((gc.enable, True), (gc.disable, False)):
        change()
        assert (read(threading.get_ident()), gc.isenabled()) == (True, enabled)


def test_what_a_function_holds_is_gone_when_it_has_returned() -> None:
    """A reader that keeps frames alive keeps iterators and batches, and with them the memory of a device."""
    freed = threading.Event()

    def work() -> None:
        batch = Batch()
        weakref.finalize(batch, freed.set)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            assert pool.submit(read, threading.get_ident()).result()

    gc.disable()
    work()
    assert freed.is_set()


def test_garbage_collection_does_not_break_the_stacks_that_are_read() -> None:
    """Without care, Python 3.11 crashes or hangs here within seconds."""
    done = ended([sys.executable, str(SCRIPT), str(AGENT), "3"], Path(), timeout_s=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 100


def test_a_fork_of_a_process_whose_stacks_are_read_collects_garbage() -> None:
    collector, seen = all_threads.Collector(), []
    for change in (
        collector.stop,
        collector.after_fork,
        collector.stop,
        collector.go_on,
    ):  # the second in the child
        change()
        seen.append(gc.isenabled())
    assert seen == [False, True, False, True]
