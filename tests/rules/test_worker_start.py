"""worker-start: pools of processes that are made again and again, and what importing in each takes."""

from tests.rules.kit import *
from tfdoctor.facts.phases.worker_times import WorkerTimes
from tfdoctor.rules.run.worker_start import check
from tfdoctor.terms.run_time import PhaseLine


def example(pools: int = 4, starts_ms: float = 32_000.0, waits_ms: float = 36_000.0) -> Verdict:
    """Four pools of two spawned processes, of which each imports TensorFlow: 32 of 60 s."""
    made = PhaseLine(at=script(9), ms=60_000.0, calls="tensorflow", samples=200)
    workers = WorkerTimes(
        number=2 * pools, pools=pools, starts_ms=starts_ms, starts=("spawn",), ms=66_000.0, importing_ms=62_000.0,
        waiting_ms=1_000.0, working_ms=3_000.0, most_working_ms=500.0, imports=(made,),
    )  # fmt: skip
    waits = run_line(Phase.CHILDREN, script(27), waits_ms, "multiprocessing.pool.Pool.map")
    return check(divided_run(60_000.0, {Phase.CHILDREN: waits_ms}, waits), workers)


sick = example
healthy = described("One pool for all rounds: its two processes import for 8 s.", example, 1, 8_000.0)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["two pools may be of two uses"] = example(2)
    told["workers start beside other work"] = example(waits_ms=900.0)
    told["forks import nothing"] = example(starts_ms=400.0)
    told["no workers"] = check(divided_run(60_000.0, {}), None)
    pool = run_line(Phase.CHILDREN, script(27), 9_000.0, "multiprocessing.pool.Pool.map")
    told["a pool whose workers were not recorded"] = check(
        divided_run(60_000.0, {Phase.CHILDREN: 9_000.0}, pool), None
    )
