"""sample-weight-scan: both sides of its limits, and which samples count."""

from tests.rules.kit import *
from tests.run_logs import Run
from tfdoctor.rules.run.sample_weight_scan import check
from tfdoctor.rules.run.sample_weight_scan.weight_scans import WeightScans


def example(ms_of_scans: float = 40_000.0, total_ms: float = 90_000.0) -> Verdict:
    """Keras looks through 130,000 weights for 40 of 90 s."""
    scan = RunLine(phase=Phase.PREPARING, at=script(31), ms=ms_of_scans, samples=round(ms_of_scans / 50))
    lines = (scan,) if scan.samples else ()
    return check(WeightScans(lines), divided_run(total_ms, {Phase.PREPARING: ms_of_scans}))


def in_fit(*work: tuple[float, RunWork, str]) -> list[object]:
    """What is made of a run recorded by hand, which does this work in fit before its first step."""
    run = Run()
    run.python(2.0, "train.py:1", work=RunWork.IMPORTING)
    with run.fit("train.py:20"):
        for seconds, kind, runs in work:
            run.python(seconds, "train.py:20", work=kind, runs=runs)
        with run.epoch("train.py:20"):
            run.steps(100, ms=10.0, at="train.py:20")
    made = run.recording()
    phases = RunPhases.measure(made, None)
    scans = WeightScans.measure(made, phases)
    return [*scans.lines, check(scans, phases)]


sick = example
healthy = described("The weights are in a list.", example, 0.0)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["2 % of the run, and less"] = example(2_000.0, 100_000.0), example(1_990.0, 100_000.0)
    weights, data = (6.0, RunWork.WEIGHTS, "keras.engine.training_utils.x"), (1.0, RunWork.INPUT, "")
    told["the samples of a run are told by line and phase"] = in_fit(weights, data)
    told["trap: a long way into fit, which copies or shuffles the data"] = in_fit((6.0, RunWork.INPUT, ""))
    told["half a second, and less"] = example(500.0, 5_000.0), example(490.0, 5_000.0)
