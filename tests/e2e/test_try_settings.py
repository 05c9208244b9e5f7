"""Settings of a trial under real TensorFlow: each arrives in the program, or its run has no figure."""

from tests.e2e.kit import *
from tfdoctor.capture.agent.trial.settings import NO_XLA, POOL_THREADS
from tfdoctor.capture.plan import Kind
from tfdoctor.trial.clock import Enough
from tfdoctor.trial.layer import why_not
from tfdoctor.trial.program import RecordedProgram, Variant
from tfdoctor.trial.running import Runner
from tfdoctor.trial.settings import CLUSTERING
from tfdoctor.trial.trial_run import TrialRun

pytestmark = pytest.mark.tensorflow

COMPILED = "Compiled cluster using XLA"
ON = "oneDNN custom operations are on"


@pytest.fixture(scope="module", autouse=True)
def settings() -> Iterator[None]:
    """Let TensorFlow log what it does, and choose everything itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        for name in ("TF_ENABLE_ONEDNN_OPTS", "TF_XLA_FLAGS"):
            patch.delenv(name, raising=False)
        yield


def ran(variant: Variant, *arguments: str, layer: bool) -> tuple[TrialRun, str]:
    """Run the script once; return what the run gave, and what TensorFlow and the script printed."""
    program = RecordedProgram((sys.executable, "set_up.py", *arguments), SCRIPTS, Kind.SCRIPT)
    with Runner.of(program, layer=layer) as stage:
        (run,) = stage.runs([variant], Enough())
        return run, (stage.folder / "run0" / "log").read_text(errors="replace")


def threads(log: str, name: str) -> int:
    rows = (line.split() for line in log.splitlines() if line.startswith("threads "))
    return sum(int(row[-1]) for row in rows if row[1] == name)


@pytest.fixture(scope="module")
def one_thread() -> tuple[TrialRun, str]:
    """Return a run with one thread in the pool, as well as what XLA would be needed for."""
    return ran(Variant("", {}, {"TF_NUM_INTRAOP_THREADS": "1"}, {NO_XLA: 1}), layer=False)


def test_settings_arrive_in_the_program(one_thread: tuple[TrialRun, str]) -> None:
    changed = Variant(
        "all at once",
        environment={"TF_NUM_INTEROP_THREADS": "5", "TF_NUM_INTRAOP_THREADS": "1", "TF_ENABLE_ONEDNN_OPTS": "0"},
        runner={POOL_THREADS: 40, NO_XLA: 1},
    )
    _, before = one_thread
    run, after = ran(changed, "xla", layer=False)
    assert run.times, run
    assert run.times.loop.examples == 4  # of the loop that trains
    assert threads(before, "tf_Compute") != 5
    assert threads(after, "tf_Compute") == 5
    assert (ON in before, ON in after) == (True, False)
    assert COMPILED not in after
    assert threads(after, "python") > threads(before, "python") + 35


def test_xla_is_on_for_all_graphs() -> None:
    """In a layer, where there is one."""
    run, log = ran(Variant("XLA", environment={"TF_XLA_FLAGS": CLUSTERING}), layer=not why_not(SCRIPTS))
    assert run.times, run
    assert COMPILED in log


def test_a_setting_that_does_not_arrive_has_no_figure(one_thread: tuple[TrialRun, str]) -> None:
    """The two runs also show the number of intra-op threads, to which TensorFlow gives no name."""
    run, one = one_thread
    assert (run.times, run.why) == (None, "no function was compiled with XLA")
    names = ("TF_ENABLE_ONEDNN_OPTS", "TF_NUM_INTEROP_THREADS")
    changed = Variant("", {}, {"TF_NUM_INTRAOP_THREADS": "9", **dict.fromkeys(names, "0")})
    run, nine = ran(changed, "sets", layer=False)
    assert (run.times, run.why) == (None, f"the program sets {' and '.join(names)} itself")
    assert threads(nine, "python") - threads(one, "python") == 8
