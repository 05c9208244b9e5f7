"""Stacks of other threads are read while those threads go on, and Python survives it."""

import concurrent.futures
import weakref

import tfdoctor.capture
from tests.capture.kit import *

SCRIPT = Path(__file__).parents[1] / "e2e" / "scripts" / "sampled_threads.py"

AGENT = Path(tfdoctor.capture.__file__).parent / "agent"


class Batch:
    """What a variable of a function refers to."""


def test_the_collector_is_as_it_was() -> None:
    threads = agent.load("process.all_threads").OtherThreads
    with threads() as stacks:
        assert not gc.isenabled()
        assert threading.get_ident() in stacks
    assert gc.isenabled()
    gc.disable()
    try:
        with threads():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_a_function_holds_is_gone_when_it_has_returned() -> None:
    """A reader that keeps frames alive keeps iterators and batches, and with them the memory of a device."""
    freed = threading.Event()
    threads = agent.load("process.all_threads").OtherThreads

    def read(caller: int) -> bool:
        with threads() as stacks:
            return caller in stacks

    def work() -> None:
        batch = Batch()
        weakref.finalize(batch, freed.set)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            assert pool.submit(read, threading.get_ident()).result()

    gc.disable()
    try:
        work()
        assert freed.is_set()
    finally:
        gc.enable()


def test_garbage_collection_does_not_break_the_stacks_that_are_read() -> None:
    """Without care, Python 3.11 crashes or hangs here within seconds."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(AGENT), "3"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 100


def test_a_fork_of_a_process_whose_stacks_are_read_collects_garbage() -> None:
    collector = agent.load("process.all_threads").Collector()
    collector.stop()
    try:
        collector.after_fork()  # as in the child
        assert gc.isenabled()
        collector.stop()
        assert not gc.isenabled()
        collector.go_on()
        assert gc.isenabled()
    finally:
        gc.enable()
