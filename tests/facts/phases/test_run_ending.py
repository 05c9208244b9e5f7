"""How a run ended: as the process told, else as the launcher saw it; what memory it wanted."""

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import manifest, recording
from tests.run_logs import PID, START_NS, Run
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.machine.memory import MemoryWanted
from tfdoctor.facts.phases.run_ending import EndKind, RunEnding
from tfdoctor.recording import Recording
from tfdoctor.recording.manifest import Ending, HostMachine, RunTimes
from tfdoctor.terms.kinds import Phase, RunCall
from tfdoctor.terms.verdict import Location

TENSOR = (
    "Graph execution error: Detected at node gradient_tape/embedding/Reshape "
    "OOM when allocating tensor with shape[3075200,512] and type float on "
    "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n [[{{node x}}]]"
)
ARRAY = "Unable to allocate 7.45 GiB for an array with shape (100000, 10000) and data type float64"


def run() -> Run:
    made = Run()
    made.python(1.0, "load.py:3")
    made.count(rss=3 * 10**9)
    made.python(1.0, "load.py:4")
    return made


def ended(why: str | None, *, into: Run | None = None, **end: Any) -> RunEnding:
    made = into or run()
    return RunEnding.measure(with_end(made.recording(why), **end))


def with_end(of: Recording, **end: Any) -> Recording:
    assert of.run is not None
    if not end or of.run.end is None:
        return of
    return replace(of, run=replace(of.run, end=replace(of.run.end, **end)))


def killed(signal: int | None, code: int, oom_kills: int = 0, pid: int = PID) -> RunEnding:
    times = RunTimes(START_NS, START_NS + 10**10, pid=pid, oom_kills=oom_kills, limit_bytes=4 * 10**9)
    outcome = Ending(code, signal)
    return RunEnding.measure(run().recording(None, times=times, outcome=outcome, finished=True))


@pytest.mark.parametrize(
    ("why", "error", "kind"),
    [
        ("exit", "", EndKind.EXIT),
        ("interrupt", "KeyboardInterrupt", EndKind.INTERRUPT),
        ("exception", "ValueError", EndKind.EXCEPTION),
        ("exception", "MemoryError", EndKind.OUT_OF_MEMORY),
        ("exception", "ResourceExhaustedError", EndKind.OUT_OF_MEMORY),
        ("exception", "InternalError", EndKind.EXCEPTION),
    ],
)
def test_a_process_tells_its_end(why: str, error: str, kind: EndKind) -> None:
    assert ended(why, error=error).kind is kind


def test_a_status_code_says_what_a_general_error_means() -> None:
    text = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2147483648 bytes."
    found = ended("exception", error="XlaRuntimeError", message=text)

    assert found.kind is EndKind.OUT_OF_MEMORY
    assert found.wanted_bytes == 2**31


def test_the_tensor_that_found_no_room_is_read() -> None:
    line = ("/job/train.py", 41)
    found = ended("exception", error="ResourceExhaustedError", message=TENSOR, at=line)

    assert (found.shape, found.dtype, found.allocator) == ((3075200, 512), "float32", "GPU_0_bfc")
    assert found.wanted_bytes == 3075200 * 512 * 4
    assert found.at == Location("train.py", 41)
    assert not found.killed_by_kernel


def test_an_array_of_numpy_is_read() -> None:
    found = MemoryWanted.of(ARRAY)

    assert found == MemoryWanted((100_000, 10_000), "float64", "", 8e9)
    odd = MemoryWanted.of(ARRAY.replace("float64", "object"))
    assert odd.nbytes == pytest.approx(7.45 * 2**30)
    assert MemoryWanted.of("something else") == MemoryWanted()


@pytest.mark.parametrize(
    ("signal", "code", "oom_kills", "kind"),
    [
        (9, 137, 1, EndKind.OUT_OF_MEMORY),
        (9, 137, 0, EndKind.KILLED),
        (None, 137, 1, EndKind.OUT_OF_MEMORY),  # through a shell
        (15, 143, 1, EndKind.KILLED),
        (2, 130, 0, EndKind.INTERRUPT),
        (None, 3, 0, EndKind.EXIT),  # os._exit
    ],
)
def test_the_launcher_sees_the_end_of_a_killed_process(
    signal: int | None, code: int, oom_kills: int, kind: EndKind
) -> None:
    found = killed(signal, code, oom_kills)

    assert found.kind is kind
    assert found.killed_by_kernel is (kind is EndKind.OUT_OF_MEMORY)


def test_of_another_process_of_the_run_the_exit_code_says_nothing() -> None:
    assert killed(None, 0, pid=PID + 1).kind is EndKind.RUNNING
    assert killed(None, 1, oom_kills=1, pid=PID + 1).kind is EndKind.OUT_OF_MEMORY


def test_an_unfinished_recording_is_running() -> None:
    assert ended(None).kind is EndKind.RUNNING


def test_memory_and_phase_are_those_of_the_end() -> None:
    found = killed(9, 137, 1)

    assert (found.peak_bytes, found.limit_bytes) == (3e9, 4e9)
    assert found.phase is Phase.PREPARING


def test_an_error_in_evaluation_ends_there() -> None:
    made = run()
    made.steps(200, 5.0, "train.py:9")
    made.during(RunCall.EVALUATE, 1.0, "train.py:12", "Model.evaluate")
    made.python(0.1)

    assert ended("exception", into=made, error="MemoryError").phase is Phase.EVALUATION


def test_an_old_recording_tells_what_the_launcher_saw() -> None:
    host = HostMachine(memory_bytes=8 * 10**9)
    old = recording(manifest=manifest(outcome=Ending(0), host=host, finished=True))

    assert RunEnding.measure(old).kind is EndKind.EXIT
    assert RunEnding.measure(old).limit_bytes == 8e9
    with pytest.raises(Unavailable, match="not recorded"):
        RunEnding.measure(recording())
