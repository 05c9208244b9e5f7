"""xprof's opinion: right where xprof is right, a reason where it has none, never an exception."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings

from scripts.synthetic.network import Network
from scripts.synthetic.run import Run, Truth
from scripts.synthetic.samples import build
from scripts.synthetic.xspace import Space
from tests.xspaces import hostile, save
from tfdoctor.trace import repair, xprof
from tfdoctor.trace.xprof import Opinion

NETWORK = Network(batch=4)


def ask(path: Path, timeout_s: float = 60) -> Opinion:
    with xprof.Asked(path, timeout_s=timeout_s) as asked:
        return asked.opinion()


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    folder = tmp_path / "private"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def record(folder: Path, run: Run) -> tuple[Path, Truth]:
    """Write a run into a folder of its own."""
    space, truth = build(run)
    (folder / "run").mkdir()
    return save(space, folder / "run" / "vm.xplane.pb"), truth


def test_a_tpus_steps_and_input_are_found(tmp_path: Path) -> None:
    run = Run(device="v5e", precision="bf16", input_ms=1.0, network=NETWORK)
    path, truth = record(tmp_path, run)
    opinion = ask(path)
    assert opinion.error == ""
    assert opinion.steps == truth.steps
    assert opinion.step_ms == pytest.approx(truth.step_ms, rel=1e-6)
    share = truth.input_wait_ms / truth.step_ms
    assert opinion.input_percent == pytest.approx(100 * share, abs=0.1)
    assert opinion.conclusion.startswith("Your program is HIGHLY input-bound")
    assert opinion.device_type == "TPU"


def test_without_steps_it_has_no_share_of_input(tmp_path: Path) -> None:
    path, _ = record(tmp_path, Run(device="v5e", precision="bf16", steps=0, network=NETWORK))
    opinion = ask(path)
    assert opinion.conclusion.startswith("No step time measured")
    assert (opinion.steps, opinion.step_ms, opinion.input_percent) == (0, None, None)


def test_a_loop_within_the_step_does_not_hide_it(tmp_path: Path) -> None:
    space, truth = build(Run(device="v100", input_ms=1.0, network=NETWORK))
    del space.proto.planes[0]  # the device: a run on the CPU is left
    (plane,) = (plane for plane in space.proto.planes if plane.name == "/host:CPU")
    key = next(key for key, m in plane.stat_metadata.items() if m.name == "iter_num")
    for stat in (s for line in plane.lines for event in line.events for s in event.stats):
        if stat.metadata_id == key:
            stat.int64_value = 1
    opinion = ask(save(space, tmp_path / "vm.xplane.pb"))
    assert opinion.steps == truth.steps - 2  # it drops the first and the last


def test_nothing_is_left_behind_and_the_trace_untouched(tmp_path: Path, private: Path) -> None:
    path, _ = record(tmp_path, Run(device="t4", precision="fp16", network=NETWORK))
    before = path.read_bytes()
    assert ask(path).steps
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    assert list(private.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"not a trace", b"\x1f\x8b", None])
def test_a_bad_trace_is_a_reason(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "vm.xplane.pb"
    if content is not None:
        path.write_bytes(content)
    opinion = ask(path)
    assert str(path) in opinion.error
    assert opinion.steps == 0


def test_a_large_trace_is_not_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = record(tmp_path, Run(device="v5e", precision="bf16", steps=1, network=NETWORK))
    monkeypatch.setattr(xprof, "LARGEST_BYTES", 1000)
    assert "it is asked for traces of up to" in ask(path).error


def test_an_answer_before_an_abort_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = record(tmp_path, Run(device="v5e", precision="bf16", steps=1, network=NETWORK))
    child = tmp_path / "child.py"
    answer: dict[str, list[str]] = {"tables": [], "steps": []}
    child.write_text(f"import os; print({json.dumps(json.dumps(answer))}, flush=True); os.abort()")
    monkeypatch.setattr(xprof, "CHILD", child)
    assert ask(path) == Opinion()


SLEEPS = "import time; time.sleep(600)"
CHILDREN = {
    "import os; os.kill(os.getpid(), 6)": "it was killed by signal 6",
    SLEEPS: "no answer within 1 s",
    "import sys; sys.exit('no such tool')": "no such tool",
    "import sys; sys.exit(1)": "it failed without a message",
    "print('<html>')": "its answer cannot be read",
    "print('[]')": "its answer is of an unknown kind",
}


@pytest.mark.parametrize("code", CHILDREN)
def test_whatever_befalls_the_child_is_a_reason(
    tmp_path: Path, private: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    path, _ = record(tmp_path, Run(device="v5e", precision="bf16", steps=1, network=NETWORK))
    child = tmp_path / "child.py"
    child.write_text(code)
    monkeypatch.setattr(xprof, "CHILD", child)
    opinion = ask(path, timeout_s=1 if code == SLEEPS else 60)
    assert opinion == Opinion(error=CHILDREN[code])
    assert list(private.iterdir()) == []


def test_memory_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = record(tmp_path, Run(device="v5e", precision="bf16", steps=1, network=NETWORK))
    monkeypatch.setattr(xprof, "BASE_BYTES", 10_000_000)
    opinion = ask(path)
    assert opinion.error
    assert opinion.steps == 0


def test_a_question_that_is_dropped_ends_its_child(
    tmp_path: Path, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = record(tmp_path, Run(device="v5e", precision="bf16", steps=1, network=NETWORK))
    child, number = tmp_path / "child.py", tmp_path / "number"
    child.write_text(f"import os, time; open({str(number)!r}, 'x').write(f'{{os.getpid()}}\\n'); time.sleep(600)")
    monkeypatch.setattr(xprof, "CHILD", child)
    with xprof.Asked(path):
        while not (number.exists() and number.read_text().endswith("\n")):
            time.sleep(0.01)
    with pytest.raises(ProcessLookupError):
        os.kill(int(number.read_text()), 0)
    assert list(private.iterdir()) == []


def test_the_child_imports_no_numpy() -> None:
    code = "import sys; from tfdoctor.trace import repair, wire; sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_never_has_an_iter_num_is_no_executor() -> None:
    assert not "ExecutorState::Process".startswith(repair.OUTSIDE_LOOPS)
    assert not "IteratorGetNextOp::DoCompute".startswith(repair.OUTSIDE_LOOPS)


@settings(max_examples=15)
@given(hostile())
def test_a_message_without_sense_is_an_opinion(space: Space) -> None:
    with tempfile.TemporaryDirectory() as folder:
        opinion = ask(save(space, Path(folder, "vm.xplane.pb")))
    assert opinion.error or opinion.conclusion


def test_a_full_disk_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = record(tmp_path, Run(device="v5e", precision="bf16", steps=1, network=NETWORK))

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    assert "No space left" in ask(path).error
