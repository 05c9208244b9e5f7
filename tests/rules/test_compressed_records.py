"""compressed-records: local records that one thread decompresses in every epoch."""

from tests.rules.cases.compressed_records import example
from tests.rules.kit import *

test_both_sides_of_each_limit = each_is(
    (example(each=0.025), Finding),
    (example(each=0.0249), Healthy),
    (example(compression=""), Healthy),
    (example(files=FileList(1, "gs")), NotApplicable),  # across a network, compression may pay
    (example(files=None), NotApplicable),
    (example(wait=0.1), Healthy),
    (example(calls=0.0), NotApplicable),  # a trace without reading
)


def test_a_full_shuffle_buffer_does_not_hide_the_reading() -> None:
    """It is read when an epoch begins; the saving of the traced steps is then unknown."""
    verdict = as_finding(example(StageTime.of("Root::ParallelMap", 3.0), each=0.1, calls=4.0))
    assert not verdict.effects
    assert as_finding(example()).effects
