"""Recording in this very process, without TensorFlow: who may begin, what is left, and who samples."""

import psutil

from tests.capture.kit import *
from tests.capture.running import *


def run(script: Path, source: str) -> subprocess.CompletedProcess[str]:
    script.write_text("import tfdoctor\n" + source)
    return plain(script)


SENSELESS = (
    *("record(steps=0)", "record(steps='20')", "record(warmup=-1)", "record(seconds=0)", "record('.').__enter__()"),
    *("record('train.py/x').__enter__()", "Recorder()", "record(for_epochs=0)", "record(trace=False, seconds=2)"),
)

PRINTS = {
    "arguments that make no sense": "".join(f"tried(lambda: tfdoctor.{words})\n" for words in SENSELESS),
    "what importing tfdoctor brings": """
import sys
def loaded(*names):
    return sorted(name for name in sys.modules if name.split('.')[0] in names)
print(loaded('tensorflow', 'keras', 'numpy', 'rich'), [name for name in loaded('tfdoctor') if '.' in name])
print({'record', 'Recorder', 'Run'} <= set(dir(tfdoctor)), tfdoctor.record.__module__, tfdoctor.Recorder.__module__)
print(loaded('tensorflow', 'keras'))
tried(lambda: tfdoctor.nothing)
""",
    "what is not there cannot be reported on": """
run = tfdoctor.record('out')
for use in (lambda: run.diagnosis, run.report, run.show, lambda: print(run._repr_html_())):
    tried(use)
with run:
    pass
tried(lambda: run.report(['pdf']))
""",
}


def test_what_a_script_is_told(script: Path, golden: Callable[[str, str], None]) -> None:
    """In one sentence, before anything starts."""
    done = {name: run(script, TEXT_OF["tried"] + source) for name, source in PRINTS.items()}
    golden("in_process.txt", "\n".join(f"## {name}\n\n{one.stdout}" for name, one in done.items()))
    assert [one.stderr.partition(" in ")[0] for one in done.values()] == [
        *("", "", "tfdoctor: no training step was seen, recorded the block")
    ]
    assert sorted(path.name for path in script.parent.iterdir()) == ["out", "train.py"]


def test_a_block_that_does_not_train_leaves_a_recording_that_says_so(script: Path) -> None:
    source = (
        "with tfdoctor.record('out', sample_every_ms=0) as run:\n    print(run.path.name, run.recording, run)\n"
    )
    done = run(script, source + "print(run.recording.root.name)\n")
    assert done.stdout == "out None <tfdoctor: the block is still running>\nout\n"
    assert done.stderr.startswith("tfdoctor: no training step was seen, recorded the block in ")
    found = recorded(script.with_name("out"))
    manifest = found.manifest
    assert (manifest.finished, manifest.command, manifest.python) == (True, ("train.py:2",), sys.executable)
    assert (manifest.outcome.exit_code, manifest.samplers, manifest.agent_errors) == (0, (), ())
    assert set(found.missing()) == {"trace", "samples"}
    assert sorted(path.name for path in found.out.iterdir()) == ["run.jsonl", "tfdoctor.json"]


RAISED = (
    ("ValueError('training broke with token=abc')", 1, "ValueError: training broke with token=***"),
    ("SystemExit(7)", 7, "SystemExit: 7"),
    ("KeyboardInterrupt()", 130, "KeyboardInterrupt: "),
)
RAISE = """
for number, error in enumerate(({})):
    try:
        with tfdoctor.record(f"out{{number}}"):
            raise error
    except BaseException as raised:
        print(raised is error, repr(raised))
"""


def test_what_a_block_raises_is_recorded_and_passed_on(script: Path) -> None:
    done = run(script, RAISE.format(", ".join(error for error, _, _ in RAISED)))
    assert done.stdout == "".join(f"True {error}\n" for error, _, _ in RAISED)
    assert (done.returncode, own_lines(done.stderr)) == (0, "")
    for number, (_, code, said) in enumerate(RAISED):
        outcome = recorded(script.with_name(f"out{number}")).manifest.outcome
        assert (outcome.exit_code, outcome.error) == (code, said)


def test_a_recording_inside_another_is_refused_and_the_outer_goes_on(script: Path) -> None:
    source = """
with tfdoctor.record('outer'):
    tried(lambda: tfdoctor.record('inner').__enter__())
for _ in range(2):
    with tfdoctor.record():
        pass
run = tfdoctor.record('left').__enter__()
"""
    done = run(script, TEXT_OF["tried"] + source)
    assert done.stdout.startswith("CaptureError The recording ")
    assert done.stdout.endswith("outer is still running: end it before you start another.\n")
    assert not script.with_name("inner").exists()
    assert recorded(script.with_name("outer")).manifest.finished
    assert len(list((script.parent / "runs").glob("train*"))) == 2  # folders that are not named never meet
    left = recorded(script.with_name("left"))  # a block that is never left is ended with the process
    assert (left.manifest.finished, left.manifest.outcome.exit_code) == (True, None)
    assert "did not finish" in left.missing()["end of the block"]


def test_a_fork_leaves_the_recording_to_its_parent(script: Path) -> None:
    source = "import os, sys\nwith tfdoctor.record('out'):\n    if os.fork() == 0:\n        sys.exit(5)\n"
    done = run(script, source + "    print(os.waitstatus_to_exitcode(os.wait()[1]))\n")
    assert (done.stdout, recorded(script.with_name("out")).manifest.outcome.exit_code) == ("5\n", 0)


def test_under_tfdoctor_profile_record_steps_aside(script: Path) -> None:
    fake_tensorflow(script.parent)
    source = "import tfdoctor\nwith tfdoctor.record('inner') as run:\n    import tensorflow; print('runs')\n"
    found = ran(script, source + "print(run.path, run.recording, run)\n")
    assert found.code == 0
    assert found.stdout.startswith("runs\nNone None <tfdoctor: `tfdoctor profile` already records this run")
    said = "tfdoctor: `tfdoctor profile` already records this run, so record() does nothing.\n"
    assert found.stderr.count(said) == 1
    assert not script.with_name("inner").exists()


def beside(path: Path) -> set[int]:
    """Return the processes that sample into a file."""
    found = psutil.process_iter(["cmdline"])
    return {process.pid for process in found if str(path) in (process.info["cmdline"] or ())}


@each(*(False, True))
def test_samples_are_taken_by_a_process_that_ctrl_c_does_not_reach(*, kills: bool, script: Path) -> None:
    """It ends with its run, however that ends."""
    script.write_text("import tfdoctor" + TEXT_OF["waits in a block"])
    process = started([sys.executable, str(script)], script.parent)
    samples = script.parent / "out" / "samples.jsonl"

    def lines() -> int:
        return samples.read_text().count("\n") if samples.exists() else 0

    until(lambda: lines() > 2)
    assert beside(samples)
    assert not beside(samples) & {child.pid for child in psutil.Process(process.pid).children(recursive=True)}
    os.killpg(process.pid, signal.SIGKILL if kills else signal.SIGINT)
    process.communicate(timeout=30)
    if not kills:
        host = recorded(script.with_name("out")).manifest.samplers[0]
        assert (process.returncode, host.name, host.status) == (0, "host", "on")
        assert host.count == lines() > 2
    until(lambda: not beside(samples))


def test_a_block_has_an_account_of_its_own(script: Path) -> None:
    done = run(script, TEXT_OF["blocks that rest"])
    lines, moments = done.stderr.splitlines(), json.loads(done.stdout)
    assert lines[0].startswith("tfdoctor: recorded the block without a trace in ")
    assert lines[1].startswith("tfdoctor: no training step was seen (ValueError: broken), recorded the block in ")
    raised = TEXT_OF["blocks that rest"][: TEXT_OF["blocks that rest"].index("raise")].count("\n") + 2
    for name, ending in (
        ("first", ("exit", "", None)),
        ("second", ("exception", "ValueError", (str(script), raised))),
    ):
        log, times = (found := recorded(script.with_name(name))).log, found.times
        end, (before, begun, ends, after, *moments) = sure(log.end), moments
        assert (end.why, end.error, end.at) == ending
        for began, ended in (
            (log.process.started_monotonic_ns, log.process.started_monotonic_ns + 1e9 * end.end),
            (times.started_ns, sure(times.ended_ns)),
        ):
            assert before <= began <= begun
            assert ends <= ended + 2000 <= after + 2000
    assert recorded(script.with_name("first")).manifest.missing == ()
