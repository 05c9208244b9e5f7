"""What ran when, on whose account."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import PS, captured, chart, device, executor, line, markers, only_line, trace, v100, wait
from tfdoctor.facts.timeline.activity import Activity, Work
from tfdoctor.facts.timeline.host_events import leaves, operation_label
from tfdoctor.terms.verdict import Stage
from tfdoctor.trace import EventType, Trace

spans = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 50)).map(lambda x: (x[0], sum(x))))


def activity(of: Trace) -> Activity:
    return chart(of).fact(Activity)


def names(work: Work) -> list[str]:
    return sorted(work.labels[label][0] for label in work.label)


def labelled(of: Trace, stage: Stage = Stage.DEVICE) -> list[str]:
    return names(activity(of).stages[stage])


def work_of(pairs: list[tuple[int, int]]) -> Work:
    starts, ends = (np.array([p[i] for p in pairs], np.int64) for i in (0, 1))
    return Work((("a", "b", "c"),), np.zeros(len(pairs), np.int32), starts, ends)


@given(spans)
def test_attributed_time_sums_to_the_union(pairs: list[tuple[int, int]]) -> None:
    work = work_of(pairs)
    assert work.attributed_ps().sum() == pytest.approx(work.spans().total)


@given(spans)
def test_no_work_is_attributed_more_than_it_ran(pairs: list[tuple[int, int]]) -> None:
    lengths = np.array([b - a for a, b in pairs], float)
    shares = work_of(pairs).attributed_ps()
    assert (shares <= lengths + 1e-9).all()
    assert (shares >= -1e-9).all()


def test_two_that_run_at_once_share_the_time() -> None:
    assert work_of([(0, 10), (5, 10), (5, 15)]).attributed_ps() == pytest.approx([5 + 5 / 3, 5 / 3, 5 + 5 / 3])


# On a CPU


def test_operations_of_the_training_function_are_the_cpus_work() -> None:
    lane = line("tf_Compute/1", executor(0, 9, 1), ("m/c:Conv2D", 1, 5), ("m/r:Relu", 5, 6))
    assert labelled(trace([lane])) == ["m/c", "m/r"]


def test_training_that_tf_data_runs_is_the_cpus_work() -> None:
    """`for x in dataset` inside a tf.function is a dataset itself: it scans the batches."""
    reduce = line("tf_data_reduce_dataset/1", captured(0, 1, 77), captured(1, 2, 78))
    pool = line(
        "tf_data_private_threadpool/1",
        executor(0, 4, 77),
        ("gradient_tape/m/c:Conv2DBackpropFilter", 1, 2),
        ("adam/Assign:AssignSubVariableOp", 2, 3),
        executor(5, 9, 78),
        ("Cast:Cast", 6, 8),
    )
    of = trace([reduce, pool])
    assert labelled(of) == ["adam/Assign", "gradient_tape/m/c"]
    assert activity(of).within_data


def test_operations_that_tf_data_started_are_told_apart_by_their_execution() -> None:
    data = line("tf_data_iterator_resource/1", captured(0, 1, 77))
    lane = line("tf_Compute/1", executor(0, 4, 77), ("Cast:Cast", 1, 3), executor(5, 9, 1), ("m/c:Conv2D", 6, 8))
    assert labelled(trace([data, lane])) == ["m/c"]


def test_operations_on_tf_datas_own_threads_are_not_the_trainers() -> None:
    lanes = [line("tf_data_private_threadpool/3", ("Cast:Cast", 0, 3)), line("python", ("a:Add", 0, 1))]
    assert labelled(trace(lanes)) == ["a"]


def test_a_call_is_not_its_body() -> None:
    lane = line("t", ("loop:While", 0, 9), ("loop/body/mul:Mul", 1, 4), ("loop/body/add:Add", 4, 8))
    assert labelled(trace([lane])) == ["loop/body/add", "loop/body/mul"]


def test_leaves_hold_nothing() -> None:
    nested = only_line(("a", 0, 10), ("b", 1, 4), ("c", 1, 3), ("d", 4, 10), ("e", 10, 12))
    assert leaves(nested).tolist() == [False, False, True, True, True]
    assert leaves(only_line()).tolist() == []


@pytest.mark.parametrize(
    ("name", "display", "label"),
    [
        ("m/c:Conv2D", "Conv2D", ("m/c", "Conv2D", "m/c:Conv2D")),
        ("a:b/c:Mul", "Mul", ("a:b/c", "Mul", "a:b/c:Mul")),
        ("m/c:Conv2D", "", None),
        ("m/c:Conv2D", "Relu", None),
        ("Iterator::Root", "Root", None),
        ("IteratorGetNextOp::DoCompute", "DoCompute", None),
        ("IteratorGetNext:IteratorGetNext", "IteratorGetNext", None),
        ("IteratorGetNext/_3:IteratorGetNextAsOptional", "IteratorGetNextAsOptional", None),
        ("x:_Arg", "_Arg", None),
        (":Add", "Add", None),
        ("Add", "Add", None),
    ],
)
def test_which_events_are_operations(name: str, display: str, label: tuple[str, str, str] | None) -> None:
    assert operation_label(EventType(name, display)) == label


def test_the_operation_that_waits_tells_of_it_where_no_wait_is_recorded() -> None:
    """A TPU's host of which only the operations were recorded; what tf.data itself iterates is no wait."""
    lanes = [
        line("main_thread/101", ("while/IteratorGetNext:IteratorGetNext", 1, 8)),
        line("python", ("EagerLocalExecute: Mul", 0, 9), ("IteratorGetNext/_3:_Send", 9, 19)),
        line("tf_data_iterator/102", ("IteratorGetNext:IteratorGetNext", 0, 20)),
    ]
    assert activity(trace(lanes)).wait.spans == ((1 * PS, 8 * PS),)


def test_an_operation_that_only_starts_to_wait_adds_nothing_to_the_wait() -> None:
    lanes = [
        line("tf_Compute/1", ("IteratorGetNext:IteratorGetNext", 0, 2)),
        line("tf_data_iterator_get_next/2", wait(5, 9)),
    ]
    assert activity(trace(lanes)).wait.spans == ((5 * PS, 9 * PS),)


def test_every_way_of_waiting_is_seen() -> None:
    lanes = [
        line("a", wait(0, 5)),
        line("b", ("IteratorGetNextAsOptionalOp::DoCompute", 4, 8), ("IteratorGetNext", 9, 10)),
    ]
    assert activity(trace(lanes)).wait.total == 8 * PS


def test_a_trace_without_a_host_has_no_work() -> None:
    found = activity(trace(None))
    assert not found.of(Stage.DEVICE).spans
    assert not found.of(Stage.TRANSFER).spans


# On a GPU


def test_kernels_copies_and_collectives_of_a_gpu() -> None:
    gpu = v100(
        line("Stream #13(Compute)", ("volta_sgemm", 0, 4), ("ncclDevKernel_AllReduce", 4, 5)),
        line("Stream #14(MemcpyH2D)", ("MemcpyH2D", 0, 1), ("Memset", 1, 2)),
        line("Kernels", ("volta_sgemm", 0, 4)),
        line("TensorFlow Ops", ("m/c:Conv2D", 0, 4)),
    )
    found = activity(trace([], gpus=[gpu]))
    totals = {stage: len(work.label) for stage, work in found.stages.items()}
    assert totals == {Stage.DEVICE: 1, Stage.COLLECTIVE: 1, Stage.TRANSFER: 2}


def test_what_launches_on_the_host_is_dispatch_and_no_work_of_the_device() -> None:
    gpu = v100(line("Stream #13(Compute)", ("k", 0, 4)))
    found = activity(trace([line("tf_Compute", ("m/c:Conv2D", 2, 3))], gpus=[gpu]))
    assert found.dispatch.total == PS
    assert found.of(Stage.DEVICE).total == 4 * PS


@pytest.mark.parametrize("stat", ["tf_op", "annotation", "level 0"])
def test_the_operation_of_a_kernel_under_its_old_and_new_names(stat: str) -> None:
    stats = {stat: "model/c/Conv2D:Conv2D#id=3#"}
    gpu = v100(line("Stream #13(Compute)", ("volta_scudnn", 0, 4, stats)))
    assert activity(trace([], gpus=[gpu])).stages[Stage.DEVICE].labels == (
        ("model/c/Conv2D", "Conv2D", "volta_scudnn"),
    )


def test_a_kernel_without_an_operation_keeps_its_own_name() -> None:
    gpu = v100(line("Stream #13(Compute)", ("my_kernel", 0, 4, {"tf_op": "no type"})))
    assert activity(trace([], gpus=[gpu])).stages[Stage.DEVICE].labels == (("", "", "my_kernel"),)


def test_a_gpu_without_kernels_says_why_nothing_is_known() -> None:
    found = activity(trace([markers(1, 10)], gpus=[v100()], errors=("Failed to load libcupti",)))
    assert "CUPTI" in found.missing
    assert found.stages == {}


# On a TPU


@pytest.mark.parametrize(
    ("category", "stage"),
    [
        ("infeed", Stage.INPUT),
        ("outfeed", Stage.TRANSFER),
        ("copy-done", Stage.TRANSFER),
        ("host send-done", Stage.TRANSFER),
        ("all-reduce", Stage.COLLECTIVE),
        ("all-reduce fusion", Stage.COLLECTIVE),
        ("reduce-scatter", Stage.COLLECTIVE),
        ("convolution fusion", Stage.DEVICE),
        ("loop fusion", Stage.DEVICE),
        ("", Stage.DEVICE),
    ],
)
def test_the_categories_of_a_tpus_operations(category: str, stage: Stage) -> None:
    tpu = device(line("XLA Ops", ("%op", 0, 3)), kinds={"%op": {"hlo_category": category}})
    assert list(activity(trace([], tpus=[tpu])).stages) == [stage]


def test_derived_lines_of_a_tpu_are_not_work() -> None:
    tpu = device(line("XLA Ops", ("%op", 0, 3)), line("XLA Modules", ("jit_f(1)", 0, 9)))
    assert activity(trace([], tpus=[tpu])).of(Stage.DEVICE).total == 3 * PS
