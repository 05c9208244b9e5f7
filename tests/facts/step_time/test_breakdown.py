"""Every instant of a step belongs to one part, and the parts sum to the step."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.builders import Row, Thread, chart, device, line, marker, markers, trace, v100, wait
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.step_time.breakdown import INPUT_SHARE, PARTS, READY_MS, Breakdown, parts_in
from tfdoctor.facts.steps.steps import PS_PER_MS, Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.trace import Trace

KERNEL, COPY, NCCL = "volta_sgemm_128x64_nn", "MemcpyH2D", "ncclDevKernel_AllReduce_Sum"

spans = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, 40)).map(lambda x: (x[0] / 10, sum(x) / 10)), max_size=8
)


def breakdown(of: Trace) -> Breakdown:
    return chart(of).fact(Breakdown)


def gpu_trace(steps: Thread, *work: Row, host: tuple[Thread, ...] = ()) -> Trace:
    stream = v100(line("Stream #14(Compute)", *work), line("Stream #15", ("warm-up", -9, -8)))
    return trace([steps, *host], gpus=[stream])


@given(kernels=spans, copies=spans, waits=spans, gaps=st.lists(st.integers(1, 9)))
def test_the_intervals_of_a_steps_parts_last_as_long_as_its_row_says(
    kernels: list[tuple[float, float]],
    copies: list[tuple[float, float]],
    waits: list[tuple[float, float]],
    gaps: list[int],
) -> None:
    """The timeline shows the intervals; all rows are computed at once."""
    starts = [0, *(sum(gaps[: n + 1]) for n in range(len(gaps)))]
    steps = line("p", *(marker(n, at, at + 1) for n, at in enumerate(starts)))
    work = [(KERNEL, *span) for span in kernels] + [(COPY, *span) for span in copies]
    facts = chart(gpu_trace(steps, *work, host=(line("q", *(wait(*span) for span in waits)),)))
    activity, where = facts.fact(Activity), facts.fact(Device)
    for step, row in zip(facts.fact(Steps).steps, facts.fact(Breakdown).steps, strict=True):
        intervals = parts_in(step, activity, where)
        lengths = {part: spans.total / PS_PER_MS / step.calls for part, spans in intervals.items()}
        assert {part: row[part] for part in intervals} == pytest.approx(lengths)


@given(kernels=spans, copies=spans, nccl=spans, waits=spans, gaps=st.lists(st.integers(1, 9)))
@example(kernels=[], copies=[], nccl=[], waits=[(0.0, 3.3)], gaps=[1, 1, 1])  # input in bursts
def test_the_parts_sum_to_every_step_and_to_the_usual_one(
    kernels: list[tuple[float, float]],
    copies: list[tuple[float, float]],
    nccl: list[tuple[float, float]],
    waits: list[tuple[float, float]],
    gaps: list[int],
) -> None:
    starts = [0, *(sum(gaps[: n + 1]) for n in range(len(gaps)))]
    steps = line("p", *(marker(n, at, at + 1, steps=1 + n % 3) for n, at in enumerate(starts)))
    work = [(KERNEL, *s) for s in kernels] + [(COPY, *s) for s in copies] + [(NCCL, *s) for s in nccl]
    facts = chart(gpu_trace(steps, *work, host=(line("data", *(wait(*s) for s in waits)),)))
    found, measured = facts.fact(Breakdown), facts.fact(Steps)
    for step, parts in zip(measured.steps, found.steps, strict=True):
        assert sum(parts.values()) == pytest.approx(step.total_ms, abs=1e-9)
        assert min(parts.values()) >= 0
    assert sum(found.median.values()) == pytest.approx(measured.usual_ms)


def test_the_device_goes_first_then_collectives_copies_and_input() -> None:
    found = breakdown(
        gpu_trace(
            markers(1, step=100, call=90),
            (KERNEL, 10, 30),
            (NCCL, 20, 40),
            (COPY, 35, 55),
            host=(line("tf_data_iterator_get_next", wait(50, 70)),),
        )
    )
    assert {part: round(value, 9) for part, value in found.median.items() if value} == {
        "device": 20,
        "collective": 10,
        "transfer": 15,
        "input": 15,
        "host": 30,
        "between": 10,
    }


def test_a_wait_behind_device_work_is_not_exposed() -> None:
    data = line("tf_data_iterator_get_next", wait(10, 60))
    found = breakdown(gpu_trace(markers(1, step=100), (KERNEL, 0, 60), host=(data,)))
    assert found["input"] == 0


def test_work_that_runs_into_the_next_step_is_divided() -> None:
    found = breakdown(gpu_trace(markers(2, step=10), (KERNEL, 5, 12)))
    assert [parts["device"] for parts in found.steps] == [5, 2]


def test_waiting_between_two_calls_is_input_and_no_gap() -> None:
    data = line("python", wait(8, 10))
    found = breakdown(gpu_trace(markers(1, step=11, call=8), (KERNEL, 0, 8), host=(data,)))
    assert found["input"] == 2
    assert found["between"] == pytest.approx(1)


def test_the_rest_is_unknown_when_the_device_was_not_recorded() -> None:
    silent = trace([markers(1, step=10, call=9), line("d", wait(0, 2))], gpus=[v100()])
    found = breakdown(silent)
    assert (found["unknown"], found["host"], found["input"]) == (7, 0, 2)
    assert (found["device"], found["between"]) == (0, 1)


def test_infeed_of_a_tpu_is_input() -> None:
    kinds = {
        "%infeed": {"hlo_category": "infeed"},
        "%all-reduce": {"hlo_category": "all-reduce-scatter fusion"},
        "%copy-done": {"hlo_category": "copy-done"},
        "%fusion": {"hlo_category": "convolution fusion"},
    }
    ops = line("XLA Ops", ("%infeed", 0, 4), ("%fusion", 4, 7), ("%all-reduce", 7, 9), ("%copy-done", 9, 10))
    found = breakdown(trace([], tpus=[device(ops, line("Steps", ("0", 0, 10)), kinds=kinds)]))
    parts = (found["input"], found["device"], found["collective"], found["transfer"])
    assert parts == pytest.approx((4, 3, 2, 1))


def test_several_training_steps_in_a_call_share_its_time() -> None:
    steps = line("p", marker(0, 0, 40, steps=4), ("tfdoctor_end", 40, 40))
    found = breakdown(gpu_trace(steps, (KERNEL, 0, 20)))
    assert (found["device"], found["host"]) == (5, 5)


def test_an_outlying_first_step_does_not_colour_the_others() -> None:
    rows = [marker(0, 0, 500), *(marker(n, 490 + 10 * n, 500 + 10 * n) for n in range(1, 9))]
    steps = line("p", *rows, ("tfdoctor_end", 580, 580))
    data = line("tf_data_iterator_get_next", wait(0, 480))
    found = breakdown(gpu_trace(steps, *((KERNEL, s, s + 9) for s in range(500, 580, 10)), host=(data,)))
    assert found["input"] == 0
    assert found["device"] == pytest.approx(9)
    assert found.steps[0]["input"] == 480
    assert not found.waits_for_input


@pytest.mark.parametrize(
    ("wait_ms", "step_ms", "waits"),
    [
        (5.0, 100.0, True),
        (4.9, 100.0, False),
        (READY_MS, 1.0, True),
        (READY_MS * 0.99, 1.0, False),
        (0.0, 0.0, False),
    ],
)
def test_a_wait_counts_from_a_share_and_from_a_time_on(wait_ms: float, step_ms: float, *, waits: bool) -> None:
    found = Breakdown.of(input=wait_ms, device=step_ms - wait_ms)
    assert found.step_ms == pytest.approx(step_ms)
    assert found.waits_for_input is waits
    assert INPUT_SHARE == 0.05


def test_a_breakdown_for_examples_has_every_part() -> None:
    assert set(Breakdown.of(input=1.0).median) == set(map(str, PARTS))


@pytest.mark.parametrize(
    ("wait", "words"),
    [
        (0.0, "does not wait for input"),
        (0.4, "does not wait for input"),
        (4.7, "waits only 4.7 % of its time for input"),
    ],
)
def test_a_wait_below_the_limit_is_told_and_not_denied(wait: float, words: str) -> None:
    parts = Breakdown.of(input=wait, device=100.0 - wait)
    assert not parts.waits_for_input
    assert parts.little_wait == f"the step {words}"
