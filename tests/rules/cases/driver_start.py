"""The cases of driver-start: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.run.driver_start import check


def example(
    opened_ms: float | None = 2_400.0,
    *,
    persistence: bool | None = False,
    others: int = 0,
    total_ms: float = 60_000.0,
) -> Verdict:
    """A run of a minute, before which the driver took 2.4 s to open the only GPU."""
    board = Board(name="GPU", index=0, persistence=persistence, others_at_start=others)
    boards = GpuBoards((board,), "580.95.05", opened_ms)
    return check(boards, divided_run(total_ms, {}))


sick = example


def healthy() -> Verdict:
    """The same run where the driver stays loaded."""
    return example(3.0, persistence=True)
