"""sample-weight-scan: both sides of its limits, and which samples count."""

from tests.rules.kit import *
from tests.run_logs import Run
from tfdoctor.rules.run.sample_weight_scan import check
from tfdoctor.rules.run.sample_weight_scan.weight_scans import WeightScan, WeightScans


def example(ms_of_scans: float = 40_000.0, total_ms: float = 90_000.0) -> Verdict:
    """Keras looks through 130,000 weights for 40 of 90 s."""
    scan = WeightScan(script(31), ms_of_scans, round(ms_of_scans / 50))
    lines = (scan,) if scan.samples else ()
    return check(WeightScans(lines), divided_run(total_ms, {Phase.PREPARING: ms_of_scans}))


def measured(run: Run) -> tuple[WeightScans, RunPhases]:
    recording = run.recording()
    phases = RunPhases.measure(recording, None)
    return WeightScans.measure(recording, phases), phases


sick = example
healthy = described("The weights are in a list.", example, 0.0)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["2 % of the run, and less"] = example(2_000.0, 100_000.0), example(1_990.0, 100_000.0)
    told["half a second, and less"] = example(500.0, 5_000.0), example(490.0, 5_000.0)


def test_the_samples_of_a_run_are_told_by_line_and_phase() -> None:
    """A run recorded by hand, through the facts to the verdict."""
    run = Run()
    run.python(2.0, "train.py:1", work=RunWork.IMPORTING)
    with run.fit("train.py:20"):
        run.python(6.0, "train.py:20", work=RunWork.WEIGHTS, runs="keras.engine.training_utils.x")
        run.python(1.0, "train.py:20", work=RunWork.INPUT)
        with run.epoch("train.py:20"):
            run.steps(100, ms=10.0, at="train.py:20")
    scans, phases = measured(run)
    (line,) = scans.lines
    assert (line.at, line.phase) == (script(20), Phase.PREPARING)
    assert line.ms == near(6_000.0, rel=0.05)
    finding = as_finding(check(scans, phases))
    (effect,) = finding.run_effects
    assert effect.phase is Phase.PREPARING
    assert finding.remedies[0].at == line.at


def test_other_work_before_the_first_step_is_no_scan() -> None:
    """Trap: a long way into fit, which copies or shuffles the data."""
    run = Run()
    with run.fit("train.py:20"):
        run.python(6.0, "train.py:20", work=RunWork.INPUT)
        with run.epoch("train.py:20"):
            run.steps(100, ms=10.0, at="train.py:20")
    scans, phases = measured(run)
    assert "No sample" in as_healthy(check(scans, phases)).summary
