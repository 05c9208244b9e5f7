"""Kernels, idle gaps, copies, collectives and waits of GPUs, in traces of a few events."""

from tests.facts.kit import *
from tfdoctor.diagnose.summary import devices
from tfdoctor.facts.gpu.activity import CLEAR, D2D, D2H, H2D, OTHER, PAGEABLE, PEER, PINNED, UNKNOWN
from tfdoctor.facts.steps.steps import TRACE

KERNEL, COPY, NCCL = "volta_sgemm_128x64_nn", "MemcpyH2D", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
CALL = "EagerExecute"


def facts(*host: Thread, work: tuple[Row, ...] = (), copies: tuple[Row, ...] = ()) -> Chart:
    streams = line("Stream #14(Kernel)", *work), line("Stream #16(MemcpyH2D)", *copies)
    return chart(trace(host, gpus=[v100(*streams)]))


def seen(values: dict[str, float] | Any) -> dict[str, float]:
    return {name: round(value, 6) for name, value in values.items() if value}


# The whole, in all variety

spans = st.lists(st.tuples(st.integers(0, 95), st.integers(0, 30)).map(lambda x: (x[0], sum(x))), max_size=8)


def _events(name: str, pairs: list[tuple[int, int]]) -> tuple[Row, ...]:
    return tuple((name, start, end, {"correlation_id": 9}) for start, end in pairs)


@given(spans, spans, spans, spans, spans, st.integers(1, 4))
def test_the_parts_sum_and_no_part_exceeds_its_whole(
    kernels: list[tuple[int, int]],
    copies: list[tuple[int, int]],
    nccl: list[tuple[int, int]],
    waits: list[tuple[int, int]],
    runs: list[tuple[int, int]],
    steps: int,
) -> None:
    known = facts(
        markers(steps, step=100 / steps, call=80 / steps),
        line("tf_data_iterator_get_next/1", *(wait(*pair) for pair in waits)),
        line("tf_Compute/1", *(executor(*pair) for pair in runs)),
        work=(*_events(KERNEL, [*kernels, (0, 1)]), *_events(NCCL, nccl)),
        copies=_events(COPY, copies),
    )
    time, gaps, parts = known.fact(GpuUtilization), known.fact(IdleGaps), known.fact(Breakdown)
    busiest, tiny = time.busiest, 1e-6
    assert busiest.busy_ms + gaps.idle_ms == pytest.approx(time.round_ms)
    assert sum(gaps.causes.values()) == pytest.approx(gaps.idle_ms)
    assert sum(gaps.sizes.values()) == pytest.approx(gaps.idle_ms)
    assert sum(gaps.dispatching.values()) == pytest.approx(gaps.causes[IdleCause.DISPATCH], abs=tiny)
    assert min(*gaps.causes.values(), *gaps.sizes.values()) >= 0
    assert busiest.busy_ms <= busiest.kernel_ms + busiest.copy_ms + busiest.collective_ms + tiny
    assert (time.exposed_wait_ms or 0.0) <= (time.wait_ms or 0.0) + tiny
    collectives = known.fact(Collectives)
    assert -tiny <= collectives.exposed_ms <= collectives.ms + tiny
    for copy in known.fact(Transfers).directions:
        assert -tiny <= copy.exposed_ms <= copy.ms + tiny
    assert parts.step_ms == pytest.approx(time.round_ms)
    assert parts[Stage.INPUT] == pytest.approx(time.exposed_wait_ms, abs=tiny)
    assert parts[Stage.DEVICE] == pytest.approx(busiest.kernel_ms, abs=tiny)
    assert parts[Stage.BETWEEN] == pytest.approx(gaps.causes[IdleCause.BETWEEN], abs=tiny)
    assert parts[Stage.COLLECTIVE] == pytest.approx(collectives.exposed_ms, abs=tiny)


# Kernels


def test_kernels_are_a_union_over_streams_and_hold_no_copies() -> None:
    streams = (
        line("Stream #14(Kernel)", (KERNEL, 0, 4), (KERNEL, 4, 6)),
        line("Stream #15(Kernel)", (KERNEL, 3, 7), ("Memset", 8, 9)),
        line("Stream #16(MemcpyH2D)", (COPY, 6, 8)),
        line("TensorFlow Ops", ("model/dense/MatMul:MatMul", 0, 10)),
    )
    time = chart(trace([markers(1, step=10)], gpus=[v100(*streams)])).fact(GpuUtilization)
    busiest = time.busiest
    assert (busiest.kernel_ms, busiest.copy_ms, busiest.busy_ms) == (7, 3, 9)
    assert busiest.kernels == 3


def test_every_gpu_has_its_own_figures() -> None:
    two = [v100(line("Stream #1", (KERNEL, 0, end))) for end in (3, 8)]
    time = chart(trace([markers(1, step=10)], gpus=[*two, v100()])).fact(GpuUtilization)
    assert [(gpu.name[-1], gpu.kernel_ms) for gpu in time.gpus] == [("1", 8), ("0", 3), ("2", 0)]


def test_without_steps_the_figures_are_of_the_whole_trace() -> None:
    known = facts(work=((KERNEL, 5, 6), (KERNEL, 8, 11)))
    time = known.fact(GpuUtilization)
    assert (time.unit, time.round_ms, time.busiest.kernel_ms) == (TRACE, 6, 4)
    assert "no training step" in known.fact(SteadySteps).why_no_steps
    assert devices.gpu_time(known)[0].label == "whole trace"


@cases(
    ([(1, 1), (5, 5)], [executor(4, 6, 1), executor(8, 15, 5)], 3),  # another execution's ended before
    ([(5, 5), (13, 5)], [executor(4, 19, 5)], 0),  # within the step: several replicas, or a loop, in one
)
def test_a_gpus_own_step_leaves_out_the_wait_before_its_first_work(
    waits: list[tuple[int, int]], runs: list[Row], before: float
) -> None:
    gpu = v100(line("Steps", ("0", 10, 20)), line("Stream #14(Kernel)", (KERNEL, 10, 12)))
    rows: list[Row] = [("IteratorGetNextOp::DoCompute", at, at + 3, {"id": own}) for at, own in waits]
    known = chart(trace([line("tf_data_iterator_get_next/1", *rows), line("tf_Compute/1", *runs)], gpus=[gpu]))
    time = known.fact(GpuUtilization)
    assert (time.wait_ms, time.wait_before_ms) == (3, before)
    if before:
        assert time.exposed_wait_ms == 0
        shown = {measure.label: measure.value.value for measure in devices.gpu_time(known)}
        assert shown["waiting for batches before the GPU step starts"] == 3
        assert shown["waiting for batches while the GPU is idle within its step"] == 0


def test_a_wait_that_no_event_would_show_is_no_measured_zero() -> None:
    """JAX without tf.data makes its batches unseen; with tf.data, or in TensorFlow, zero is measured."""
    work = v100(line("Stream #14(Kernel)", (KERNEL, 5, 6), (KERNEL, 8, 11)))
    rows = [("PjitFunction(f)", 0, 1), ("Iterator::Root", 1, 2)]
    shown = {}
    for count in (1, 2):
        known = chart(trace([line("python", *rows[:count])], gpus=[work]))
        time = known.fact(GpuUtilization)
        labels = {measure.label for measure in devices.gpu_time(known)}
        shown[count] = (time.wait_ms, time.exposed_wait_ms, "waiting for batches" in labels)
    assert shown == {1: (None, None, False), 2: (0.0, 0.0, True)}


def test_an_outlier_is_left_out() -> None:
    starts = [0, 10, 20, 30, 40, 90]
    steps = line("python", *(marker(n, at, at + 10) for n, at in enumerate(starts)), ("tfdoctor_end", 100, 100))
    known = facts(steps, work=tuple((KERNEL, at, at + 4) for at in (0, 10, 20, 30, 40, 60, 90)))
    assert known.fact(GpuUtilization).busiest.kernel_ms == pytest.approx(4)


def test_a_run_on_the_cpu_has_no_gpu_and_says_so_once() -> None:
    known = chart(trace([markers(2, step=10)]))
    for kind in (GpuUtilization, IdleGaps, Transfers, Collectives, GpuActivities):
        with pytest.raises(Unavailable, match="used no GPU"):
            known.fact(kind)
    assert devices.gpu_time(known) == ()
    assert "used no GPU" in devices.missing(known)


def test_kernels_that_were_not_recorded_are_not_idle_time() -> None:
    silent = trace([markers(2, step=10)], gpus=[v100()], errors=("vm: Failed to load libcupti",))
    with pytest.raises(Unavailable, match="CUPTI"):
        chart(silent).fact(IdleGaps)


# Idle gaps


def test_each_cause_of_an_idle_gpu_is_told() -> None:
    launch, sync = ("cuLaunchKernel", 24, 25, {"correlation_id": 1}), ("cuStreamSynchronize", 50, 58)
    root: Row = ("FunctionRun", 6, 7, {"_r": 1})
    gaps = facts(
        line("python", marker(0, 0, 90), (CALL, 5, 85), root, ("tfdoctor_end", 100, 100)),
        line("tf_data_iterator_get_next/1", wait(10, 20)),
        line("tf_Compute/1", executor(15, 40), sync, launch),
        work=((KERNEL, 30, 35, {"correlation_id": 1}),),
    ).fact(IdleGaps)
    assert seen(gaps.causes) == {
        IdleCause.INPUT: 10,
        IdleCause.DISPATCH: 15,
        IdleCause.SYNC: 8,
        IdleCause.PYTHON: 10,
        IdleCause.BETWEEN: 10,
        IdleCause.UNKNOWN: 42,
    }


def test_a_gap_before_work_that_was_launched_long_ago_is_nobodys() -> None:
    launches = [("cuLaunchKernel", n, n + 0.5, {"correlation_id": n}) for n in range(1, 4)]
    late = ("cuLaunchKernel", 12, 13, {"correlation_id": 4})
    ran = enumerate([(5, 7), (7.004, 9), (9.004, 11), (14, 20)], 1)
    gaps = facts(
        markers(1, step=20),
        line("tf_Compute/1", executor(0, 20), *launches, late),
        work=tuple((KERNEL, *pair, {"correlation_id": n}) for n, pair in ran),
    ).fact(IdleGaps)
    assert seen(gaps.causes) == {IdleCause.QUEUED: 0.008, IdleCause.DISPATCH: 8}
    assert seen(gaps.gaps) == {"below 10 µs": 2, "above 1 ms": 2}
    assert gaps.launching_ms == 0


def test_gaps_are_told_by_size() -> None:
    work = tuple((KERNEL, *pair) for pair in [(0, 1), (1.005, 2), (2.05, 3), (3.5, 5), (8, 10)])
    gaps = facts(markers(1, step=10), line("tf_Compute/1", executor(0, 10)), work=work).fact(IdleGaps)
    expected = {"below 10 µs": 0.005, "10 to 100 µs": 0.05, "0.1 to 1 ms": 0.5, "above 1 ms": 3}
    assert seen(gaps.sizes) == expected
    assert seen(gaps.gaps) == dict.fromkeys(expected, 1)
    assert gaps.launching_ms == pytest.approx(0.555)


def test_tf_datas_executors_launch_nothing_for_the_training() -> None:
    runs = ("InstantiatedCapturedFunction::Run", 0, 9, {"id": 7}), executor(0, 9, 8)
    pipeline, pool = line("tf_data_iterator_resource/1", *runs), line("tf_Compute/2", executor(0, 9, 7))
    gaps = facts(markers(1, step=10), pipeline, pool, work=((KERNEL, 9, 10),)).fact(IdleGaps)
    assert gaps.causes[IdleCause.DISPATCH] == 0


def test_python_is_not_told_where_no_thread_of_it_is_known() -> None:
    known = facts(line("tf_Compute/1", executor(0, 1)), work=((KERNEL, 0, 1), (KERNEL, 3, 4)))
    gaps = known.fact(IdleGaps)
    assert seen(gaps.causes) == {IdleCause.UNKNOWN: 2}


# Waits

ASYNC = ("IteratorGetNextAsOptionalOp::DoCompute", 0, 4)
FETCH = ("EagerLocalExecute: IteratorGetNext", 1, 9)


@cases(
    (line("python", FETCH, wait(2, 8)), 0),  # another thread that fetches batches is not the trainer
    (line("tf_Compute/1", ("IteratorGetNext/_3:_Send", 0, 9)), 0),  # the copy of a batch
    (line("tf_data_iterator_get_next", ASYNC), 4),  # of distributed datasets
)
def test_waits_for_batches_are_the_trainers(thread: Thread, ms: float) -> None:
    assert facts(markers(1, step=10), thread, work=((KERNEL, 9, 10),)).fact(GpuUtilization).wait_ms == ms


@each("IteratorGetNext", "IteratorGetNextSync")
def test_the_trainers_own_eager_call_for_a_batch_is_a_wait(name: str) -> None:
    ask = (f"EagerLocalExecute: {name}", 1, 4)
    known = facts(line("python", marker(0, 0, 10), ask, ("tfdoctor_end", 10, 10)), work=((KERNEL, 3, 10),))
    time = known.fact(GpuUtilization)
    assert (time.wait_ms, time.exposed_wait_ms, known.fact(Breakdown)["input"]) == (3, 2, 2)


# Copies


def copied(name: str, text: str) -> Transfer:
    said = {"memcpy_details": text} if text else {}
    known = facts(markers(1, step=10), work=((KERNEL, 4, 10),), copies=((name, 2, 6, said),))
    (found,) = known.fact(Transfers).directions
    return found


@cases(
    ("MemcpyH2D", H2D),
    ("MemcpyHToD", H2D),
    ("MemcpyD2H", D2H),
    ("MemcpyD2D", D2D),
    ("MemcpyP2P", PEER),
    ("Memset", CLEAR),
    ("MemcpyOther", OTHER),
    ("MemcpyA2D", OTHER),
)
def test_directions(name: str, direction: str) -> None:
    found = copied(name, "")
    assert (found.direction, found.ms, found.exposed_ms) == (direction, 4, 2)
    assert (found.nbytes, found.rate) == (None, None)


@cases(
    ("MemcpyH2D", "kind_src:pageable kind_dst:device size:4000 dest:0 async:1", PAGEABLE),
    ("MemcpyH2D", "kind_src:pinned kind_dst:device size:4000 dest:0 async:1", PINNED),
    ("MemcpyD2H", "kind_src:device kind_dst:pageable size:4000 dest:0 async:1", PAGEABLE),
    ("MemcpyH2D", "size:4000 dest:0 async:1", UNKNOWN),
    ("MemcpyH2D", "kind_src:managed kind_dst:device size:4000", UNKNOWN),
)
def test_sizes_and_memory(name: str, text: str, memory: HostMemoryKind) -> None:
    found = copied(name, text)
    assert found.nbytes == 4000
    assert found.rate == pytest.approx(4000 / 4e-3)
    assert found.host_memory == memory
    assert found.memory[memory] == 4000


@each("kind:Unknown size:0 dest:512 async:1", "size:²", "size:-4", "x")
def test_a_size_that_is_not_told_is_unknown_and_not_nothing(text: str) -> None:
    found = copied("MemcpyH2D", text)
    assert (found.nbytes, found.rate, found.host_memory) == (None, None, UNKNOWN)


def test_copies_within_the_device_have_no_host_memory_and_those_that_do_not_occur_no_time() -> None:
    assert copied("MemcpyD2D", "kind_src:device kind_dst:device size:4000").memory == {}
    none = facts(markers(1, step=10), work=((KERNEL, 4, 10),)).fact(Transfers)[H2D]
    assert (none.ms, none.count) == (0, 0)


def test_rocms_copies_are_no_kernels() -> None:
    copies = [("__amd_rocclr_copyBuffer.kd", *at, {"correlation_id": n}) for n, at in ((5, (1, 3)), (6, (4, 5)))]
    stream = line("Stream #17(Kernel)", *copies, ("Cijk_Ailk_Bljk.kd", 5, 9))
    call = line("Host Threads/2768", ("hipMemcpyHtoDAsync", 0, 1, {"correlation_id": 5}))
    known = chart(trace([markers(1, step=10), call], gpus=[device(stream, device_vendor="AMD")]))
    assert known.fact(GpuUtilization).busiest.kernel_ms == 4
    found = known.fact(Transfers)
    assert [(one.direction, one.ms) for one in found.directions] == [(H2D, 2), (OTHER, 1)]


# Collectives


def test_collectives_are_hidden_by_kernels_alone() -> None:
    nccl = line("Stream #20", (NCCL, 3, 8), ("ncclKernel_Broadcast_RING_LL", 8, 9))
    gpu = v100(line("Stream #14", (KERNEL, 0, 4)), nccl, line("Stream #16", (COPY, 6, 7)))
    known = chart(trace([markers(1, step=10)], gpus=[gpu]))
    found = known.fact(Collectives)
    assert (found.ms, found.exposed_ms) == (6, 5)
    assert dict(found.kinds) == {"AllReduce": 1, "Broadcast": 1}
    assert "collectives, AllReduce" in {measure.label for measure in devices.gpu_time(known)}
    assert known.fact(Transfers)[H2D].exposed_ms == 0


# In the report


def shown(*copies: Row) -> dict[str, float]:
    known = facts(markers(1, step=10), work=((KERNEL, 4, 10),), copies=copies)
    return {measure.label: measure.value.value for measure in devices.gpu_time(known)}


def test_a_gpu_that_works_outside_the_step_shown_is_not_called_idle() -> None:
    """The first of two replicas began its step, and its kernels, before the trace's only whole step."""
    busy, early = (v100(line("Stream #14(Kernel)", (KERNEL, start, end))) for start, end in ((4, 10), (-9, -2)))
    found = devices.gpu_time(chart(trace([markers(1, step=10)], gpus=[early, busy])))
    rows = {measure.label: measure.value.value for measure in found}
    assert rows["kernel time of GPU 1"] == 6
    assert rows["kernel time of GPU 0, outside the steps"] == 7
    assert "kernel time of GPU 0" not in rows


def test_the_report_shows_the_step_its_gaps_and_its_copies() -> None:
    rows = shown()
    assert (rows["step (median)"], rows["kernel time of GPU 0"], rows["GPU 0 idle"]) == (10, 6, 4)
    assert rows["number of gaps above 1 ms"] == 1
    assert devices.missing(facts(markers(1, step=10), work=((KERNEL, 4, 10),))) == ""
    kind = "kind_src:pageable kind_dst:device"
    small, large, unknown = (
        shown((COPY, 0, 1, {"memcpy_details": text}))
        for text in (f"{kind} size:4 dest:0", f"{kind} size:4000000 dest:0", "size:4000000 dest:0 async:1")
    )
    assert "rate of copies host to device" not in small
    assert large["rate of copies host to device"] == pytest.approx(4e9)
    assert large["copies host to device, pageable host memory"] == 4e6
    assert unknown["copies host to device, unknown kind of host memory"] == 4e6


# The GPU's idle time after values that were read, where every nanosecond is known.

STEPS = 6


def syncs(*, reads: bool, launched: float) -> HostSyncs:
    """Kernels from 2 to 8 of 10 ms, launched at a time of the step or before it, and a copy back until 8.1."""
    starts = [10.0 * n for n in range(STEPS)]
    work = [("volta_sgemm", at + 2, at + 8, {"correlation_id": 100 + n}) for n, at in enumerate(starts)]
    copies = [("MemcpyD2H", at + 8, at + 8.1, {"correlation_id": 200 + n}) for n, at in enumerate(starts) if reads]
    host: list[Row] = [marker(n, at, at + 9) for n, at in enumerate(starts)]
    for n, at in enumerate(max(0.0, at + launched) for at in starts):
        host.append(("cuLaunchKernel", at, at + 0.1, {"correlation_id": 100 + n}))
    gpu = v100(line("Stream #14(Kernel)", *work), line("Stream #18(MemcpyD2H)", *copies))
    return chart(trace(host=[line("python", *host)], gpus=[gpu])).fact(HostSyncs)


def test_what_is_launched_after_the_value_is_read_waits_for_the_host() -> None:
    found = syncs(reads=True, launched=1.0)
    assert (found.reads, found.syncs) == pytest.approx((1.0, 5 / 6))  # nothing follows the last
    assert found.host_ms == pytest.approx((0.9 + 2.0) * 5 / 6, rel=0.15)
    assert found.between_ms == pytest.approx(1.0 * 5 / 6, rel=0.15)
    # Trap: the loss is copied back at each step's end, and nobody waits for it.
    ahead, unread = syncs(reads=True, launched=-5.0), syncs(reads=False, launched=1.0)
    assert (ahead.syncs, ahead.host_ms, ahead.between_ms, unread.host_ms, unread.between_ms) == (0,) * 5


# Detours over the host: by the names of copies, and by the operations of the host between them.

ROUNDS = 8
THERE, BACK = "model/dense/Relu/_30:_HostRecv", "model/smooth/EagerPyFunc/_32:_Recv"
WORK = "model/smooth/EagerPyFunc:EagerPyFunc"


def traced(
    there: str = THERE, back: str = BACK, work: str = WORK, *, kernel_between: bool = False, stat: str = "tf_op"
) -> Chart:
    """Trace steps of 20 ms: a copy of 1 ms at 5 ms, work on the host, and a copy of 1 ms at 10 ms."""
    starts = [20.0 * step for step in range(ROUNDS)]
    between = [(7, 8)] if kernel_between else []
    kernels = [("gemm", at + a, at + b) for at in starts for a, b in ((1, 5), *between, (11, 15))]
    copies: list[Any] = [("MemcpyD2H", at + 5, at + 6, {stat: there}) for at in starts]
    copies += [("MemcpyH2D", at + 10, at + 11, {stat: back}) for at in starts]
    host = line("tf_Compute/1", *((work, at + 6.5, at + 9.5) for at in starts))
    gpu = v100(line("Stream #1", *kernels), line("Stream #2", *copies))
    return chart(trace([markers(ROUNDS, 20.0, 18.0), host], gpus=[gpu]))


def measured(*args: Any, **more: Any) -> Detours:
    """Measure the detours of such steps."""
    return traced(*args, **more).fact(Detours)


@each("tf_op", "annotation", "level 0")
def test_a_detour_costs_both_copies_and_the_wait(stat: str) -> None:
    (row,) = measured(stat=stat).rows
    assert (row.name, row.type) == ("model/smooth/EagerPyFunc", "EagerPyFunc")
    assert (row.copies_ms, row.waiting_ms) == pytest.approx((2.0, 4.0))
    assert row.calls == pytest.approx(1.0)


@cases((WORK, 0.0), ("other/Mul:Mul", 1.0))
def test_python_does_not_read_what_an_operation_on_the_host_takes(work: str, reads: float) -> None:
    assert traced(work=work).fact(HostSyncs).reads == pytest.approx(reads)


@each(
    {"kernel_between": True},  # Trap: the result is needed later only, and the GPU goes on meanwhile.
    # Trap: the loss goes to the host, and a batch comes in the same step.
    {"back": "IteratorGetNext/_2:_Recv", "work": "IteratorGetNext:IteratorGetNext"},
    {"work": "other/Mul:Mul"},  # copies of something else
    {"there": "#edge_name=copy#"},  # a value that Python reads has no name
    ids=["goes on", "a batch", "something else", "a value"],
)
def test_what_is_no_detour(changed: dict[str, Any]) -> None:
    assert measured(**changed).rows == ()


test_what_is_not_known = unavailable(
    (lambda: chart(trace([markers(ROUNDS, 20.0)])).fact(Detours), "GPU"),
    (lambda: measured(there="", back=""), "name"),  # as in traces of JAX
)
