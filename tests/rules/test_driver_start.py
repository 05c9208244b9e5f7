"""driver-start: the time to open the GPUs counts where nothing keeps the driver loaded, and where it is much."""

from tests.rules.kit import *
from tfdoctor.rules.run import driver_start
from tfdoctor.rules.run.driver_start import check


def example(
    opened_ms: float | None = 2_400.0, *, persistence: bool | None = False, others: int = 0,
    total_ms: float = 60_000.0,
) -> Verdict:  # fmt: skip
    """A run of a minute, before which the driver took 2.4 s to open the only GPU."""
    board = Board(name="GPU", index=0, persistence=persistence, others_at_start=others)
    boards = GpuBoards((board,), "580.95.05", opened_ms)
    return check(boards, divided_run(total_ms, {}))


sick = example


def healthy() -> Verdict:
    """The same run where the driver stays loaded."""
    return example(3.0, persistence=True)


RUN = divided_run(60_000.0, {})

test_both_sides_of_each_limit = each_is(
    (example(1000.0), Finding),
    (example(999.0), Healthy),
    (example(2400.0, total_ms=240_000.0), Finding),
    (example(2400.0, total_ms=240_100.0), Healthy),  # a long run does not notice it
    (example(5000.0, persistence=True), Healthy, "is on"),  # trap: a library on a slow disk takes as long
    # Trap: with another client the driver stays loaded, whatever its mode is
    (example(2400.0, others=1), Healthy, "is off"),
    (example(persistence=None), NotApplicable, "persistence mode"),
    (example(None), NotApplicable, "persistence mode"),
)


def test_it_is_a_note_without_a_saving_of_the_recorded_run() -> None:
    """Trap: the sampler opened the GPUs meanwhile, so the recorded run may not have waited."""
    found = as_finding(example())
    assert (found.severity, found.effects, found.run_effects) == (Severity.NOTE, (), ())
    assert "2.40 s" in found.summary


def boards(*rows: Any) -> GpuBoards:
    return chart(trace(), recording(samples=rows)).fact(GpuBoards)


def gpu(index: int = 0, *, persistence: bool = False, **more: Any) -> dict[str, Any]:
    return {"index": index, "name": "NVIDIA A100", "board": {"persistence": persistence}, **more}


def test_gpus_that_the_run_may_not_use_are_not_judged() -> None:
    driver = {"version": "580.95.05", "opened_ms": 2400.0}
    hidden = gpu(1, persistence=True, visible=False)
    known = boards({"unix_ns": 1, "gpu": [gpu(visible=True), hidden], "driver": driver})
    assert [board.index for board in known.boards] == [0]
    assert "2.40 s" in as_finding(applied(driver_start, known, RUN)).summary


def test_recordings_before_the_reading_of_settings_are_not_judged() -> None:
    known = boards({"unix_ns": 1, "gpu": [{"index": 0, "name": "NVIDIA A100", "gpu_pct": 99}]})
    assert "persistence mode" in as_not_applicable(applied(driver_start, known, RUN)).reason
