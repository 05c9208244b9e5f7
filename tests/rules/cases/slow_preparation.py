"""The cases of slow-preparation: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.run.slow_preparation import check


def example(*lines: RunLine, total_ms: float = 131_000.0, calls: tuple[MadeCall, ...] = ()) -> Verdict:
    """Judge a run that prepares data at these lines and in these calls, and trains otherwise."""
    preparing = sum(line.ms for line in lines) + sum(call.ms for call in calls)
    phases = divided_run(total_ms, {Phase.PREPARING: preparing}, *lines)
    return check(phases, RunCalls(calls))


def sick() -> Verdict:
    """A table of 100,000 rows is read by iterrows: 21 of 131 s."""
    at, calls = Location("prepare.py", 33), "pandas.core.frame.DataFrame.iterrows"
    saved = run_line(Phase.PREPARING, Location("prepare.py", 60), 400.0, "numpy.save", repeats=False)
    return example(run_line(Phase.PREPARING, at, 21_000.0, calls, samples=420, function="load_table"), saved)


def healthy() -> Verdict:
    """The same table is read by read_csv in 2 s, and used as columns."""
    at = Location("prepare.py", 12)
    line = run_line(Phase.PREPARING, at, 2_000.0, "pandas.read_csv", repeats=False)
    return example(line, total_ms=112_000.0)
