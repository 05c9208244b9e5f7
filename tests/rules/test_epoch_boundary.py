"""epoch-boundary: work between epochs is found by line; a first slow epoch and a usual validation are not."""

from functools import partial

import pytest

from tests.rules.applied import applied
from tests.rules.cases.epoch_boundary import example
from tests.rules.run_facts import line, made
from tests.rules.verdicts import as_finding, as_healthy
from tfdoctor.facts.phases.run_calls import MadeCall, RunCalls
from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.facts.phases.run_steps import LongSteps
from tfdoctor.rules import epoch_boundary
from tfdoctor.terms.kinds import Phase, RunCall
from tfdoctor.terms.run_time import PhaseSegment
from tfdoctor.terms.verdict import Finding, Healthy, Location, NotApplicable, Recurrence

EPOCHS = 10
FROM_SLICES = "tensorflow.python.data.ops.dataset_ops.DatasetV2.from_tensor_slices"
judged = partial(example, total_ms=100_000.0)


def found(*calls: MadeCall, lines: tuple[RunLine, ...] = (), long: LongSteps | None = None) -> Finding:
    verdict = judged(*calls, lines=lines, long=long)
    assert isinstance(verdict, Finding), verdict
    return verdict


def validated(
    ms: float, *, count: int = EPOCHS, batches: float | None = None, examples: float | None = None
) -> MadeCall:
    return made(RunCall.EVALUATE, 40, count, ms / count, batches=batches, examples=examples, within=RunCall.EPOCH)


def between(ms: float, calls: str = "", *, repeats: bool = True, number: int = 50) -> RunLine:
    return line(Phase.BOUNDARIES, number, ms, calls, repeats=repeats)


def test_a_usual_validation_is_healthy() -> None:
    assert "19.0 s" in as_healthy(judged(validated(19_000.0, batches=100.0))).summary


def test_a_big_validation_has_the_price_of_validating_every_few_epochs() -> None:
    finding = found(validated(40_000.0, batches=2_000.0, examples=512_000.0))  # 2 ms a batch
    assert finding.severity is None
    assert finding.run_effects[0].scales == pytest.approx(0.2)


def test_a_validation_slower_per_batch_than_training_is_more() -> None:
    finding = found(validated(40_000.0, batches=400.0))  # 10 ms a batch, and 4 ms a training step
    assert finding.severity is None
    assert finding.run_effects[0].scales == pytest.approx(0.4)
    assert finding.run_effects[0].recurs is Recurrence.PER_EPOCH
    assert finding.run_effects[0].times == EPOCHS


def test_a_validation_in_some_of_the_epochs_comes_in_these_alone() -> None:
    """Trap: one fit validates, and a second one does not."""
    finding = found(validated(40_000.0, count=6, batches=2_000.0))
    assert (finding.run_effects[0].recurs, finding.run_effects[0].times) == (Recurrence.PER_CALL, 6)
    assert "6.67 s in each of six epochs" in finding.summary


@pytest.mark.parametrize(("fits", "times"), [(1, EPOCHS), (2, 0)])
def test_of_several_fits_it_is_not_counted_in_which_epochs_sampled_work_comes(fits: int, times: int) -> None:
    finding = as_finding(judged(lines=(between(20_000.0, FROM_SLICES),), fits=fits))
    assert finding.run_effects[0].times == times


def test_a_validation_in_small_batches_is_more() -> None:
    finding = found(validated(40_000.0, batches=4_000.0, examples=128_000.0))
    assert finding.severity is None
    assert finding.run_effects[0].scales == pytest.approx(32 / 512)


def test_a_validation_many_times_in_an_epoch_is_more() -> None:
    finding = found(validated(40_000.0, count=100))
    assert "many times in each epoch" in finding.summary
    assert finding.run_effects[0].scales == pytest.approx(0.1)


def test_a_prediction_for_each_epoch_is_found_within_fit_and_in_a_loop() -> None:
    callback = made(RunCall.PREDICT, 12, EPOCHS, 2_000.0, within=RunCall.EPOCH)
    loop = made(RunCall.PREDICT, 12, EPOCHS, 2_000.0, looped=True)
    after = made(RunCall.PREDICT, 12, EPOCHS, 2_000.0, looped=True, after_training=True)
    assert "Each epoch makes predictions at train.py:12" in found(callback).summary
    assert "Each epoch makes predictions at train.py:12" in found(loop).summary
    assert isinstance(judged(after), Healthy)


def test_a_loop_of_predictions_in_a_callback_is_left_to_slow_prediction() -> None:
    call = made(RunCall.PREDICT, 12, 500, 40.0, within=RunCall.EPOCH)
    assert isinstance(judged(call), Healthy)


def test_a_metric_by_prediction_is_found_from_a_twentieth_of_the_run_on() -> None:
    assert found(made(RunCall.PREDICT, 12, EPOCHS, 500.0, looped=True)).severity is None
    assert isinstance(judged(made(RunCall.PREDICT, 12, EPOCHS, 499.0, looped=True)), Healthy)


def test_a_checkpoint_in_each_epoch_is_priced_per_epoch() -> None:
    finding = found(made(RunCall.SAVE, 40, EPOCHS, 1_500.0, within=RunCall.EPOCH))
    assert "1.50 s per epoch" in finding.summary
    assert finding.run_effects[0].phase is Phase.SAVING


@pytest.mark.parametrize(
    ("calls", "repeats", "says", "left"),
    [
        (FROM_SLICES, False, "builds a dataset", 0.0),
        ("gc.collect", False, "garbage", 0.0),
        ("matplotlib.pyplot.savefig", False, "draws", 0.1),
        ("", True, "A loop in Python", 0.1),
        ("keras.src.ops.nn.ctc_decode", False, "The script works", 0.1),
    ],
)
def test_lines_between_epochs_are_named(calls: str, says: str, left: float, *, repeats: bool) -> None:
    finding = found(lines=(between(30_000.0, calls, repeats=repeats),))
    assert says in finding.summary
    assert "train.py:50" in finding.summary
    assert finding.severity is None  # the price decides
    assert finding.run_effects[0].scales == left
    assert finding.remedies[0].at == Location("train.py", 50)


@pytest.mark.parametrize("calls", ["", "keras.src.ops.nn.ctc_decode", FROM_SLICES])
def test_work_is_done_once_only_if_its_result_stays_the_same(calls: str) -> None:
    """What a decoder makes of predictions depends on the training: nobody can do it before."""
    (remedy,) = found(lines=(between(30_000.0, calls),)).remedies
    assert " once" not in remedy.action or " if its " in remedy.action


def test_what_fit_does_itself_needs_longer_epochs() -> None:
    fit = made(RunCall.FIT, 50, 1, 90_000.0)
    finding = found(fit, lines=(between(30_000.0, "keras.Model.fit", repeats=False),))

    assert "Keras' fit itself works between the epochs at train.py:50" in finding.summary
    assert "more steps" in finding.remedies[0].action
    assert finding.run_effects
    few = judged(fit, lines=(between(30_000.0, "keras.Model.fit", repeats=False),), epochs=9)
    assert isinstance(few, Finding)
    assert not few.run_effects  # its cause may be the recorder


@pytest.mark.parametrize(("longest_s", "of_ms"), [(2.0, 30_000.0), (12.0, 15_000.0)])
def test_one_long_wait_does_not_come_with_each_epoch(longest_s: float, of_ms: float) -> None:
    spans = tuple(
        PhaseSegment(Phase.BOUNDARIES, start, start + took, Location("train.py", 50))
        for start, took in ((0.0, 2.0), (20.0, longest_s), (40.0, 2.0), (60.0, 2.0), (80.0, 2.0))
    )
    lines = (between(30_000.0, repeats=False),)
    finding = judged(lines=lines, spans=spans, epochs=6)
    assert isinstance(finding, Finding)
    assert finding.run_effects[0].of.value == pytest.approx(of_ms)
    joined = judged(lines=lines, spans=spans, epochs=7)
    assert isinstance(joined, Finding)
    assert joined.run_effects[0].of.value == pytest.approx(30_000.0)


def test_several_lines_between_epochs_are_a_loop() -> None:
    finding = found(lines=(between(20_000.0), between(9_000.0, number=51)))
    assert finding.severity is None
    assert finding.run_effects[0].of.value == pytest.approx(29_000.0)


def test_what_saves_most_comes_first() -> None:
    finding = found(
        lines=(between(9_000.0, "gc.collect"), between(30_000.0, "scipy.signal.fft", repeats=False, number=90))
    )
    assert [effect.subject for effect in finding.run_effects] == ["train.py:90", "train.py:50"]


def test_the_wait_for_the_first_batch_of_each_epoch_is_found_once() -> None:
    long = LongSteps(
        count=12, ms=16_000.0, beyond_ms=15_000.0, first=10, first_beyond_ms=14_000.0, first_median_ms=1_300.0
    )
    finding = found(lines=(line(Phase.BOUNDARIES, 40, 14_000.0),), long=long)
    assert "waits for its first batch" in finding.summary
    assert [effect.of.value for effect in finding.run_effects] == [pytest.approx(13_000.0)]


def test_a_first_epoch_that_is_slow_by_tracing_is_healthy() -> None:
    once = LongSteps(
        count=1, ms=9_000.0, beyond_ms=9_000.0, first=1, first_beyond_ms=9_000.0, first_median_ms=9_000.0
    )
    all_of_them = LongSteps(
        count=10, ms=9_000.0, beyond_ms=9_000.0, first=10, first_beyond_ms=9_000.0, first_median_ms=10.0
    )
    assert isinstance(judged(long=once), Healthy)
    assert isinstance(judged(long=all_of_them), Healthy)


def test_what_is_missing_is_said() -> None:
    part = RunPhases(total_ms=1.0, times={}, whole=False, missing="only a window was traced")
    assert applied(epoch_boundary, part, RunCalls((), 5)) == NotApplicable(reason="only a window was traced")
    assert isinstance(judged(epochs=1), NotApplicable)
