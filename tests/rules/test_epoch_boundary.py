"""epoch-boundary: work between epochs is found by line; a first slow epoch and a usual validation are not."""

from collections import defaultdict

import pytest

from tests.rules.kit import *
from tests.rules.run_facts import line, made
from tfdoctor.rules.run import epoch_boundary
from tfdoctor.rules.run.epoch_boundary import check
from tfdoctor.terms.run_time import PhaseSegment

FIT = Location("train.py", 40)

PHASES = {RunCall.EVALUATE: Phase.EVALUATION, RunCall.PREDICT: Phase.PREDICTION, RunCall.SAVE: Phase.SAVING}


def example(
    *calls: MadeCall, lines: tuple[RunLine, ...] = (), total_ms: float = 67_000.0, epochs: int = 10,
    long: LongSteps | None = None, spans: tuple[PhaseSegment, ...] = (), fits: int = 1,
) -> Verdict:  # fmt: skip
    """Judge a run of 5,000 steps of 4 ms with these calls and lines."""
    times: dict[Phase, float] = defaultdict(float)
    for call in calls:
        if call.call in PHASES:
            times[PHASES[call.call]] += call.ms
    for one in lines:
        times[one.phase] += one.ms
    run = replace(divided_run(total_ms, times, *lines), spans=spans)
    return check(run, RunCalls(calls, epochs, fits=fits), equal_steps(FIT, 5_000, 4.0, long))


def sick() -> Verdict:
    """A validation of 3,000 batches in each of 10 epochs takes 40 s beside 20 s of training steps."""
    return example(_validated(4_000.0, 3_125.0))


def healthy() -> Verdict:
    """A validation of 100 batches in each of 10 epochs takes 3 s beside 20 s of training steps."""
    return example(_validated(300.0, 100.0), total_ms=30_000.0)


def _validated(each_ms: float, batches: float) -> MadeCall:
    given = {"batches": batches, "examples": 32 * batches, "within": RunCall.EPOCH}
    return made_call(RunCall.EVALUATE, FIT, 10, each_ms, **given)


EPOCHS = 10
FROM_SLICES = "tensorflow.python.data.ops.dataset_ops.DatasetV2.from_tensor_slices"
judged = partial(example, total_ms=100_000.0)


def found(*calls: MadeCall, **more: Any) -> Finding:
    return as_finding(judged(*calls, **more))


def validated(ms: float, *, count: int = EPOCHS, **more: Any) -> MadeCall:
    return made(RunCall.EVALUATE, 40, count, ms / count, **{"within": RunCall.EPOCH, **more})


def predicted(each_ms: float, count: int = EPOCHS, **more: Any) -> MadeCall:
    return made(RunCall.PREDICT, 12, count, each_ms, **more)


def between(ms: float, calls: str = "", *, repeats: bool = True, number: int = 50) -> RunLine:
    return line(Phase.BOUNDARIES, number, ms, calls, repeats=repeats)


def long(count: int, ms: float, beyond_ms: float, first: int, median_ms: float) -> LongSteps:
    more: dict[str, Any] = {"first": first, "first_beyond_ms": beyond_ms, "first_median_ms": median_ms}
    return LongSteps(count=count, ms=ms, beyond_ms=beyond_ms, **more)


@pytest.mark.parametrize(
    ("call", "left"),
    [
        (validated(40_000.0, batches=2_000.0, examples=512_000.0), 0.2),  # 2 ms a batch: validate every few epochs
        (validated(40_000.0, batches=400.0), 0.4),  # 10 ms a batch, and 4 ms a training step
        (validated(40_000.0, batches=4_000.0, examples=128_000.0), 32 / 512),  # in small batches
        (validated(40_000.0, count=100), 0.1),  # many times in an epoch
    ],
)
def test_a_validation_costs_what_is_more_than_needed(call: MadeCall, left: float) -> None:
    finding = found(call)
    (effect,) = finding.run_effects
    assert finding.severity is None
    assert effect.scales == pytest.approx(left)
    assert ("many times in each epoch" in finding.summary) is (call.count > EPOCHS)
    if call.count == EPOCHS:
        assert (effect.recurs, effect.times) == (Recurrence.PER_EPOCH, EPOCHS)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (predicted(2_000.0, within=RunCall.EPOCH), "Each epoch makes predictions at train.py:12"),
        (predicted(2_000.0, looped=True), "Each epoch makes predictions at train.py:12"),
        (predicted(500.0, looped=True), "predictions"),  # from a twentieth of the run on
        (made(RunCall.SAVE, 40, EPOCHS, 1_500.0, within=RunCall.EPOCH), "1.50 s per epoch"),
    ],
)
def test_calls_in_each_epoch_are_found(call: MadeCall, words: str) -> None:
    finding = found(call)
    assert words in finding.summary
    assert finding.severity is None
    assert finding.run_effects[0].phase is (Phase.SAVING if call.call is RunCall.SAVE else Phase.PREDICTION)


test_what_is_usual_or_not_of_each_epoch_is_healthy = each_is(
    (judged(validated(19_000.0, batches=100.0)), Healthy, "19.0 s"),
    (judged(predicted(2_000.0, looped=True, after_training=True)), Healthy),
    (judged(predicted(499.0, looped=True)), Healthy),
    (
        judged(predicted(40.0, 500, within=RunCall.EPOCH)),
        Healthy,
    ),  # a loop in a callback is left to slow-prediction
    (judged(long=long(1, 9_000.0, 9_000.0, 1, 9_000.0)), Healthy),  # the first epoch is slow by tracing
    (judged(long=long(10, 9_000.0, 9_000.0, 10, 10.0)), Healthy),
    (judged(epochs=1), NotApplicable),
)


def test_a_validation_in_some_of_the_epochs_comes_in_these_alone() -> None:
    """Trap: one fit validates, and a second one does not."""
    finding = found(validated(40_000.0, count=6, batches=2_000.0))
    assert (finding.run_effects[0].recurs, finding.run_effects[0].times) == (Recurrence.PER_CALL, 6)
    assert "6.67 s in each of six epochs" in finding.summary


@pytest.mark.parametrize(("fits", "times"), [(1, EPOCHS), (2, 0)])
def test_of_several_fits_it_is_not_counted_in_which_epochs_sampled_work_comes(fits: int, times: int) -> None:
    finding = found(lines=(between(20_000.0, FROM_SLICES),), fits=fits)
    assert finding.run_effects[0].times == times


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
    fit, lines = made(RunCall.FIT, 50, 1, 90_000.0), (between(30_000.0, "keras.Model.fit", repeats=False),)
    finding = found(fit, lines=lines)
    assert "Keras' fit itself works between the epochs at train.py:50" in finding.summary
    assert "more steps" in finding.remedies[0].action
    assert finding.run_effects
    assert not found(fit, lines=lines, epochs=9).run_effects  # its cause may be the recorder


@pytest.mark.parametrize(("longest_s", "of_ms"), [(2.0, 30_000.0), (12.0, 15_000.0)])
def test_one_long_wait_does_not_come_with_each_epoch(longest_s: float, of_ms: float) -> None:
    spans = tuple(
        PhaseSegment(Phase.BOUNDARIES, start, start + took, Location("train.py", 50))
        for start, took in ((0.0, 2.0), (20.0, longest_s), (40.0, 2.0), (60.0, 2.0), (80.0, 2.0))
    )
    lines = (between(30_000.0, repeats=False),)
    for epochs, ms in ((6, of_ms), (7, 30_000.0)):
        (effect,) = found(lines=lines, spans=spans, epochs=epochs).run_effects
        assert effect.of.value == pytest.approx(ms)


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
    waits = replace(long(12, 16_000.0, 14_000.0, 10, 1_300.0), beyond_ms=15_000.0)
    finding = found(lines=(line(Phase.BOUNDARIES, 40, 14_000.0),), long=waits)
    assert "waits for its first batch" in finding.summary
    assert [effect.of.value for effect in finding.run_effects] == [pytest.approx(13_000.0)]


def test_what_is_missing_is_said() -> None:
    part = RunPhases(total_ms=1.0, times={}, whole=False, missing="only a window was traced")
    assert applied(epoch_boundary, part, RunCalls((), 5)) == NotApplicable(reason="only a window was traced")
