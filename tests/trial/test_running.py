"""Runs of a trial with real processes: which of several processes is timed."""

from tests.trial.kit import *


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let trials have their folders here."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


TWO_PROCESSES = """
import json, os, sys
plan = json.loads(os.environ["TFDOCTOR_PLAN"].split(" ", 2)[2])
for name, text in zip(("a", "b"), sys.argv[1:]):
    os.mkdir(os.path.join(plan["processes"], name))
    open(os.path.join(plan["processes"], name, "timing.json"), "w").write(text)
"""


def ran(folder: Path, *words: str, **environment: str) -> TrialRun:
    """Run a program of Python once, without TensorFlow."""
    program = RecordedProgram((sys.executable, "-S", "-c", *words), folder, Kind.COMMAND)
    with tempfile.TemporaryDirectory() as trial:
        stage = Runner(program, Path(trial), layer=False)
        return stage.runs([Variant("a", environment=environment)], Enough())[0]


def timing(*loops: dict[str, Any], **more: Any) -> str:
    return json.dumps({"loops": loops, "finite": True, "enough": True, **more})


def test_of_two_processes_the_one_that_trains_longest_is_timed(temporary: Path) -> None:
    """Their folders have the numbers of processes, whose order is chance."""
    run = ran(temporary, TWO_PROCESSES, *(timing(loop([step] * 200)) for step in (1.0, 5.0)))
    assert sure(run.times).step_ms == pytest.approx(5.0)


LONG = loop([1.0] * 200)


@cases(
    (timing(loop([1.0] * 11)), "its longest loop has 12 steps, and a figure needs 36", False),
    (timing(), "no loop of training steps was seen", False),
    (timing(LONG, without={"reached": 0, "refused": ""}), "nothing of it ran in the steps", True),
    (timing(LONG, without={"reached": 0, "refused": "its length is unknown"}), "its length is unknown", True),
    (timing(LONG, settings={"replaced": ["A", "B"]}), "the program sets A and B itself", True),
    (timing(LONG, settings={"reached": {NO_XLA: 0}}), "no function was compiled with XLA", True),
    (timing(LONG, without={"reached": 2, "refused": ""}, settings={"reached": {NO_XLA: 1}}), "", False),
)
def test_why_a_run_has_no_figure(text: str, why: str, *, ineffective: bool, temporary: Path) -> None:
    run = ran(temporary, TWO_PROCESSES, text)
    assert run.why.startswith(why)
    assert (run.times is None, bool(run.why), bool(run.ineffective)) == (bool(why), bool(why), ineffective)


KILL = "import os; os.kill(os.getpid(), {})"
TENSORFLOW = "InvalidArgumentError: {{function_node}} no shape (7, 7)"


@cases(
    (KILL.format(9), {}, "it was killed, as the kernel does where memory runs out"),
    (KILL.format(11), {}, "it crashed with SIGSEGV; it printed nothing"),
    (f"import sys; sys.exit('Traceback:\\n  File\\n{TENSORFLOW}\\n\\t [[node]]\\n\\n')", {}, TENSORFLOW),
    # The run itself gets the value of a credential:
    ("import os, sys; sys.exit('bad: ' + os.environ['HF_TOKEN'])", {"HF_TOKEN": "mine-own"}, "bad: ***"),
    ("import os, sys; sys.exit('bad: ' + os.environ['USE_AUTH'])", {"USE_AUTH": "1"}, "bad: 1"),
    ("import os, sys; sys.exit('bad: ' + os.environ['PLAIN'])", {"PLAIN": "text"}, "bad: text"),
)
def test_a_run_that_fails_says_why(script: str, environment: dict[str, str], error: str, temporary: Path) -> None:
    run = ran(temporary, script, **environment)
    assert (run.times, run.error, run.why) == (None, error, error)
