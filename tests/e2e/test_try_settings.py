"""Settings of a trial under real TensorFlow: each arrives in the program, or its run has no figure."""

import sys
from pathlib import Path

import pytest

from tfdoctor.capture.agent.process.runner_settings import NO_XLA, POOL_THREADS
from tfdoctor.capture.plan import Kind
from tfdoctor.trial.clock import Enough
from tfdoctor.trial.layer import why_not
from tfdoctor.trial.program import ORIGINAL, RecordedProgram, Variant
from tfdoctor.trial.running import Runner
from tfdoctor.trial.settings import CLUSTERING
from tfdoctor.trial.times import NoTimes, TrialTimes
from tfdoctor.trial.trial_run import TrialRun

pytestmark = pytest.mark.tensorflow

SCRIPTS = Path(__file__).with_name("scripts")

COMPILED = "Compiled cluster using XLA"
ON = "oneDNN custom operations are on"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let TensorFlow log what it does, and choose everything itself."""
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for name in ("TF_ENABLE_ONEDNN_OPTS", "TF_XLA_FLAGS"):
        monkeypatch.delenv(name, raising=False)


def ran(variant: Variant, *arguments: str, layer: bool) -> tuple[TrialRun, str]:
    """Run the script once; return what the run gave, and what TensorFlow and the script printed."""
    program = RecordedProgram((sys.executable, "set_up.py", *arguments), SCRIPTS, Kind.SCRIPT)
    with Runner.of(program, layer=layer) as stage:
        run = stage.run(variant, Enough(), 0)
        return run, (stage.folder / "run0" / "log").read_text(errors="replace")


def threads(log: str, name: str) -> int:
    rows = (line.split() for line in log.splitlines() if line.startswith("threads "))
    return sum(int(row[-1]) for row in rows if row[1] == name)


def test_settings_arrive_in_the_program() -> None:
    usual, before = ran(ORIGINAL, "xla", layer=False)
    assert isinstance(usual.times, TrialTimes), usual
    assert COMPILED in before
    changed = Variant(
        "all at once",
        environment={"TF_NUM_INTEROP_THREADS": "5", "TF_NUM_INTRAOP_THREADS": "1", "TF_ENABLE_ONEDNN_OPTS": "0"},
        runner={POOL_THREADS: 40, NO_XLA: 1},
    )
    run, after = ran(changed, "xla", layer=False)
    assert isinstance(run.times, TrialTimes), run
    assert threads(before, "tf_Compute") != 5
    assert threads(after, "tf_Compute") == 5
    assert ON not in after
    assert COMPILED not in after
    assert threads(after, "python") > threads(before, "python") + 15  # XLA has some in the run before


def test_xla_is_on_for_all_graphs() -> None:
    if why_not(SCRIPTS):
        pytest.skip("this kernel allows no layer")
    run, log = ran(Variant("XLA", environment={"TF_XLA_FLAGS": CLUSTERING}), layer=True)
    assert isinstance(run.times, TrialTimes), run
    assert COMPILED in log


def test_a_setting_that_does_not_arrive_has_no_figure() -> None:
    """The two runs also show the number of intra-op threads, to which TensorFlow gives no name."""
    changed = Variant("", {}, {"TF_NUM_INTRAOP_THREADS": "1"}, {NO_XLA: 1})
    run, one = ran(changed, layer=False)
    assert run.times == NoTimes("no function was compiled with XLA")
    names = ("TF_ENABLE_ONEDNN_OPTS", "TF_NUM_INTEROP_THREADS")
    changed = Variant("", {}, {"TF_NUM_INTRAOP_THREADS": "9", **dict.fromkeys(names, "0")})
    run, nine = ran(changed, "sets", layer=False)
    assert run.times == NoTimes(f"the program sets {' and '.join(names)} itself")
    assert threads(nine, "python") - threads(one, "python") == 8
