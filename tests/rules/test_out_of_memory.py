"""out-of-memory: what died, where, and what fits instead."""

from tests.rules.kit import *
from tfdoctor.facts.phases.run_ending import EndKind, RunEnding
from tfdoctor.rules.run.out_of_memory import check

GPU_FULL = RunEnding(
    kind=EndKind.OUT_OF_MEMORY, error="ResourceExhaustedError", at=Location("train.py", 52), phase=Phase.STEPS,
    shape=(512, 64, 224, 224), dtype="float", allocator="GPU_0_bfc", peak_bytes=3.1e9, limit_bytes=64e9,
    device_peak_bytes=15.2e9,
)  # fmt: skip


def example(
    ending: RunEnding = GPU_FULL, *lines: RunLine, calls: RunCalls | None = None,
    memory: MemoryTrends | None = None, tuned: TunedBuffers | None = None,
) -> Verdict:  # fmt: skip
    """The activations of a batch of 512 do not fit on the GPU."""
    phases = divided_run(60e3, {}, *lines) if lines else None
    return check(ending, phases, calls, memory, None, tuned)


sick = example


def healthy() -> Verdict:
    """The run ends by itself, with a tenth of the memory."""
    return example(RunEnding(kind=EndKind.EXIT, peak_bytes=3.1e9, limit_bytes=32e9))


AT = Location("train.py", 52)

DIED = replace(GPU_FULL, shape=(256, 64, 112, 112))

READ = replace(
    DIED, error="MemoryError", phase=Phase.PREPARING, shape=(1_000_000, 784), dtype="float64", allocator=""
)


def actions(verdict: Verdict) -> str:
    return "; ".join(remedy.action for remedy in as_finding(verdict).remedies)


def test_what_died_where_and_for_what_is_told() -> None:
    finding = as_finding(example(DIED))
    assert finding.summary == (
        "The run ran out of memory of GPU_0_bfc during the training steps at train.py:52, "
        "which asked for 822 MB of shape [256, 64, 112, 112]"
    )
    assert (finding.severity, finding.concern, finding.at) == (Severity.CRITICAL, Concern.RUN, AT)
    assert (finding.failure, finding.run_effects) == (RunFailure.HAPPENED, ())


def test_the_batch_is_halved() -> None:
    assert "to 128 at first" in first_action(example(DIED))
    assert "batch_size=128" in first_code(example(DIED))
    assert "16 bit" in actions(example(DIED))
    assert "16 bit" not in actions(example(replace(DIED, allocator="")))  # the CPU's memory
    for shape in ((1_000_000, 8), (512,), ()):  # their first dimension is no batch
        assert "to 32 at first" in actions(example(replace(DIED, shape=shape)))


def test_the_remedy_follows_the_phase() -> None:
    for ending, words in (
        (READ, "in batches instead of one array; Keep the data as float32"),
        (replace(READ, dtype="uint8"), "in batches instead of one array"),
        (replace(READ, phase=Phase.PREDICTION), "results in smaller batches"),
        (replace(READ, phase=Phase.BUILDING), "the layer smaller"),
        (replace(READ, phase=None), "in batches"),
    ):
        assert words in actions(example(ending))


def test_one_hot_rows_are_recognized_by_their_function() -> None:
    one_hot = "keras.utils.to_categorical"
    for calls, classes, sparse in ((one_hot, 10_000, True), (one_hot, 10, False), ("numpy.zeros", 10_000, False)):
        line = RunLine(phase=Phase.PREPARING, at=AT, ms=900.0, samples=9, calls=calls)
        ending = replace(READ, shape=(1_000_000, classes))
        assert ("sparse loss" in actions(example(ending, line))) is sparse


def filling(first: float) -> MemoryTrends:
    trend = Trend(
        what=Grows.RESIDENT, first=first, last=9e9, slope=1e8, low=9e7, high=2e8, steady=True, points=80
    )  # fmt: skip
    return MemoryTrends((FillingMemory(trend=trend),))


def test_what_grew_before_comes_first() -> None:
    memory = filling(1e9)
    assert actions(example(DIED, memory=memory)).startswith("Find what grows")
    fit = MadeCall(call=RunCall.FIT, name="Model.fit", at=None, count=3, ms=9e4, models=3)
    assert actions(example(DIED, memory=memory, calls=RunCalls((fit,)))).startswith("Forget each model")


def test_growth_is_a_reason_only_where_it_filled_the_memory() -> None:
    for first, limit, grows in (
        (6.3e9, 64e9, True),
        (6.4e9, 64e9, False),
        (1e9, 0.8e9, False),  # it would never have fitted
    ):
        verdict = example(replace(DIED, limit_bytes=limit), memory=filling(first))
        assert actions(verdict).startswith("Find what grows") is grows


KILLED = replace(DIED, at=None, error="", shape=(), killed_by_kernel=True, allocator="")


def test_buffers_that_tf_data_sizes_may_have_filled_the_hosts_memory() -> None:
    tuned = TunedBuffers((dataset_of("Prefetch", at=Location("train.py", 22)),), 38_535_168)
    remedy = as_finding(example(KILLED, tuned=tuned)).remedies[-1]
    assert remedy.at == Location("train.py", 22)
    assert "ram_budget" in remedy.code
    assert all("ram_budget" not in one.code for one in as_finding(example(DIED, tuned=tuned)).remedies)


def test_a_kill_names_the_line_of_its_phase_only_as_the_one_with_most_time() -> None:
    sure = RunLine(phase=Phase.STEPS, at=AT, ms=900.0, samples=9)
    finding = as_finding(example(KILLED, sure))
    assert "The kernel killed the run" in finding.summary
    assert AT.path not in finding.summary
    assert finding.at == AT
    assert as_finding(example(KILLED, replace(sure, samples=4))).at is None


def test_other_ends_are_no_fault() -> None:
    for kind in (EndKind.EXIT, EndKind.EXCEPTION, EndKind.INTERRUPT):
        assert isinstance(example(replace(DIED, kind=kind)), Healthy)
    for kind in (EndKind.KILLED, EndKind.RUNNING):
        assert isinstance(example(replace(DIED, kind=kind)), NotApplicable)
