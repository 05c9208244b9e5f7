"""The examples of a step are seen in each run: the figures are per example where they differ."""

from tests.trial.kit import *

PATCH = Variant("mine.diff")
LARGER = Variant("batch x 2", examples=Fraction(2), model="a step has 64 examples instead of 32", may_keep=False)


@cases(
    # A step of 4 examples instead of 32 is 80 % shorter, and takes longer for as many examples.
    (PATCH, 0.2, ([32] * 4, [4, 4, 4, 2]), -0.6, "a step has 4 examples instead of 32"),
    (PATCH, 0.5, ([], [4] * 4), 0.5, ""),  # unknown ones leave the figure as it is
    # A data set of 24 examples gives 24, whatever the batch is.
    (LARGER, 1.0, ([24] * 4, [24] * 4), None, "as many examples as without it"),
    # Per example only where its size is seen:
    (LARGER, 1.2, ([32] * 4, [64] * 4), 0.4, "a step has 64 examples instead of 32"),
    (LARGER, 1.2, ([32] * 4, []), None, "could not be seen"),
    (LARGER, 1.2, ([32] * 4, [64, 64, 40, 40]), None, "could not be seen"),
    (LARGER, 1.2, ([32] * 4, [48] * 4), None, "48 examples"),
)
def test_a_change_of_the_batch_is_compared_per_example(
    variant: Variant, factor: float, batches: tuple[list[int], ...], share: float | None, said: str, clock: Tick
) -> None:
    as_is, own = batches
    examples = {variant.name: own, AS_IS: as_is}
    machine = Machine({variant.name: factor}, between=0.0, examples=examples, tick=clock)
    found = row(conduct(machine, variant)[0], variant.name)
    assert (found.measured and found.measured.share) == (share and pytest.approx(share, abs=0.01))
    if share is None:
        assert said in found.missing
        return
    training = sure(found.training)
    assert (training.why, training.state is TrainingState.CHANGED) == (said, bool(said))
    assert found.examples == (own[0] / as_is[0] if as_is else 1)
