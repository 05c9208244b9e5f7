"""Stacks of other threads are read while those threads go on, and Python survives it."""

import gc
import subprocess
import sys
import threading
from pathlib import Path

import tfdoctor.capture
from tests.capture import agent

SCRIPT = Path(__file__).parents[1] / "e2e" / "scripts" / "sampled_threads.py"

AGENT = Path(tfdoctor.capture.__file__).parent / "agent"


def test_the_collector_is_as_it_was() -> None:
    threads = agent.load("other_threads").OtherThreads
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


def test_garbage_collection_does_not_break_the_stacks_that_are_read() -> None:
    """Without care, Python 3.11 crashes or hangs here within seconds."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(AGENT), "6"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 100


def test_a_fork_of_a_process_whose_stacks_are_read_collects_garbage() -> None:
    collector = agent.load("other_threads").Collector()
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
