"""No damaged recording ends in a traceback, and no rule fails on one; `benchmarks/mutations.py` runs more."""

from scripts.mutation.cases import run
from tests.kit import *

CASES, CHUNK = 60, 30


@each(*range(0, CASES, CHUNK))
def test_a_damaged_recording_is_reported_or_refused(first: int, tmp_path: Path) -> None:
    outcomes = [run(seed, tmp_path) for seed in range(first, first + CHUNK)]
    failed = [outcome for outcome in outcomes if outcome.failure]

    assert not failed, f"seeds {[outcome.seed for outcome in failed]}: {failed[0].failure}"
    assert {outcome.refused for outcome in outcomes} == {False, True}
