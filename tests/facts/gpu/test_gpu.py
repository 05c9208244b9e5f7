"""Kernels, idle gaps, copies, collectives and waits of GPUs, in traces of a few events."""

from tests.facts.kit import *
from tfdoctor.diagnose.summary import devices
from tfdoctor.facts.gpu.activity import H2D

KERNEL, COPY, NCCL = "volta_sgemm_128x64_nn", "MemcpyH2D", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
CALL = "EagerExecute"
told = Told()


def facts(*host: Thread, work: tuple[Row, ...] = (), copies: tuple[Row, ...] = ()) -> Chart:
    streams = line("Stream #14(Kernel)", *work), line("Stream #16(MemcpyH2D)", *copies)
    return chart(trace(host, gpus=[v100(*streams)]))


def gpu_time(known: Chart) -> object:
    """The time of each GPU, and what the report shows of it."""
    found = known.fact(GpuUtilization)
    gpus = tuple(fields(gpu, "name kernel_ms copy_ms busy_ms collective_ms kernels") for gpu in found.gpus)
    waits = fields(found, "unit round_ms wait_ms exposed_wait_ms wait_before_ms")
    rows = {one.label: one.value.value for one in devices.gpu_time(known)}
    return [waits, *gpus, rows, known.fact(SteadySteps).why_no_steps or "in steps"]


# The whole, in all variety

spans = st.lists(st.tuples(st.integers(0, 95), st.integers(0, 30)).map(lambda x: (x[0], sum(x))), max_size=8)
Pairs = list[tuple[int, int]]


def _events(name: str, pairs: Pairs) -> tuple[Row, ...]:
    return tuple((name, start, end, {"correlation_id": 9}) for start, end in pairs)


@given(spans, spans, spans, spans, spans, st.integers(1, 4))
def test_the_parts_sum_and_no_part_exceeds_its_whole(
    kernels: Pairs, copies: Pairs, nccl: Pairs, waits: Pairs, runs: Pairs, steps: int
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


STREAMS = (
    line("Stream #14(Kernel)", (KERNEL, 0, 4), (KERNEL, 4, 6)),
    line("Stream #15(Kernel)", (KERNEL, 3, 7), ("Memset", 8, 9)),
    line("Stream #16(MemcpyH2D)", (COPY, 6, 8)),
    line("TensorFlow Ops", ("model/dense/MatMul:MatMul", 0, 10)),
)


def gpus(*machines: Machine) -> Chart:
    return chart(trace([markers(1, step=10)], gpus=machines))


def working(start: float, end: float) -> Machine:
    return v100(line("Stream #14(Kernel)", (KERNEL, start, end)))


def copying(text: str) -> Chart:
    """A copy from the host beside a kernel, of which CUPTI said this."""
    copies = ((COPY, 0, 1, {"memcpy_details": text}),) if text else ()
    return facts(markers(1, step=10), work=((KERNEL, 4, 10),), copies=copies)


def outlying() -> Chart:
    starts = [0, 10, 20, 30, 40, 90]
    steps = line("python", *(marker(n, at, at + 10) for n, at in enumerate(starts)), ("tfdoctor_end", 100, 100))
    return facts(steps, work=tuple((KERNEL, at, at + 4) for at in (0, 10, 20, 30, 40, 60, 90)))


def of_jax(*rows: Row) -> Chart:
    work = v100(line("Stream #14(Kernel)", (KERNEL, 5, 6), (KERNEL, 8, 11)))
    return chart(trace([line("python", ("PjitFunction(f)", 0, 1), *rows)], gpus=[work]))


def collective() -> Chart:
    nccl = line("Stream #20", (NCCL, 3, 8), ("ncclKernel_Broadcast_RING_LL", 8, 9))
    return gpus(v100(line("Stream #14", (KERNEL, 0, 4)), nccl, line("Stream #16", (COPY, 6, 7))))


def own_step(waits: list[tuple[int, int]], *runs: Row) -> Chart:
    """A GPU's own step from 10 to 20 ms, and waits for batches of so many executions."""
    gpu = v100(line("Steps", ("0", 10, 20)), line("Stream #14(Kernel)", (KERNEL, 10, 12)))
    rows: list[Row] = [("IteratorGetNextOp::DoCompute", at, at + 3, {"id": own}) for at, own in waits]
    return chart(trace([line("tf_data_iterator_get_next/1", *rows), line("tf_Compute/1", *runs)], gpus=[gpu]))


told[gpu_time] = {
    "kernels are a union over streams and hold no copies": gpus(v100(*STREAMS)),
    "every gpu has its own figures": gpus(working(0, 3), working(0, 8), v100()),
    "without steps the figures are of the whole trace": facts(work=((KERNEL, 5, 6), (KERNEL, 8, 11))),
    "a gpus own step leaves out the wait before its first work": own_step(
        [(1, 1), (5, 5)], executor(4, 6, 1), executor(8, 15, 5)
    ),
    "but not one of several replicas, or of a loop, in one": own_step([(5, 5), (13, 5)], executor(4, 19, 5)),
    "JAX without tf.data makes its batches unseen, so no wait is no measured zero": of_jax(),
    "with tf.data zero is measured": of_jax(("Iterator::Root", 1, 2)),
    "an outlier is left out": outlying(),
    # The first of two replicas began its step, and its kernels, before the trace's only whole step.
    "a gpu that works outside the step shown is not called idle": gpus(working(-9, -2), working(4, 10)),
    "the report shows the step and its gaps": copying(""),
    "a small copy has no rate": copying("kind_src:pageable kind_dst:device size:4 dest:0"),
    "a large one has": copying("kind_src:pageable kind_dst:device size:4000000 dest:0"),
    "the kind of its memory may be unknown": copying("size:4000000 dest:0 async:1"),
    "a run on the cpu has no gpu": chart(trace([markers(2, step=10)])),
    "collectives are hidden by kernels alone": collective(),
}

ON_CPU = chart(trace([markers(2, step=10)]))


def test_a_run_on_the_cpu_says_once_that_it_has_no_gpu() -> None:
    assert devices.gpu_time(ON_CPU) == ()
    assert "used no GPU" in devices.missing(ON_CPU)
    assert devices.missing(copying("")) == ""


def gaps(*host: Thread, work: tuple[Row, ...]) -> IdleGaps:
    return facts(*host, work=work).fact(IdleGaps)


@told
def each_cause_of_an_idle_gpu_is_told() -> object:
    launch, sync = ("cuLaunchKernel", 24, 25, {"correlation_id": 1}), ("cuStreamSynchronize", 50, 58)
    root: Row = ("FunctionRun", 6, 7, {"_r": 1})
    return gaps(
        line("python", marker(0, 0, 90), (CALL, 5, 85), root, ("tfdoctor_end", 100, 100)),
        line("tf_data_iterator_get_next/1", wait(10, 20)),
        line("tf_Compute/1", executor(15, 40), sync, launch),
        work=((KERNEL, 30, 35, {"correlation_id": 1}),),
    )


@told
def a_gap_before_work_that_was_launched_long_ago_is_nobodys() -> object:
    launches = [("cuLaunchKernel", n, n + 0.5, {"correlation_id": n}) for n in range(1, 4)]
    late = ("cuLaunchKernel", 12, 13, {"correlation_id": 4})
    ran = enumerate([(5, 7), (7.004, 9), (9.004, 11), (14, 20)], 1)
    return gaps(
        markers(1, step=20),
        line("tf_Compute/1", executor(0, 20), *launches, late),
        work=tuple((KERNEL, *pair, {"correlation_id": n}) for n, pair in ran),
    )


@told
def gaps_are_told_by_size() -> object:
    work = tuple((KERNEL, *pair) for pair in [(0, 1), (1.005, 2), (2.05, 3), (3.5, 5), (8, 10)])
    return gaps(markers(1, step=10), line("tf_Compute/1", executor(0, 10)), work=work)


@told
def tf_datas_executors_launch_nothing_for_the_training() -> object:
    runs = ("InstantiatedCapturedFunction::Run", 0, 9, {"id": 7}), executor(0, 9, 8)
    pipeline, pool = line("tf_data_iterator_resource/1", *runs), line("tf_Compute/2", executor(0, 9, 7))
    return gaps(markers(1, step=10), pipeline, pool, work=((KERNEL, 9, 10),))


APART = ((KERNEL, 0, 1), (KERNEL, 3, 4))
told.add("no thread of python is known", lambda: gaps(line("tf_Compute/1", executor(0, 1)), work=APART))

ASYNC = ("IteratorGetNextAsOptionalOp::DoCompute", 0, 4)
EAGER, WINDOW = "EagerLocalExecute: ", ("tfdoctor_end", 10, 10)
FETCH = (f"{EAGER}IteratorGetNext", 1, 9)


def waited(*rows: Row, name: str = "python") -> object:
    """What a thread beside the trainer, or one that is the trainer's by its marker, tells of waits."""
    trainer = () if rows[0][0] == "train" else (markers(1, step=10),)
    known = facts(*trainer, line(name, *rows), work=((KERNEL, 3, 10),))
    return fields(known.fact(GpuUtilization), "wait_ms exposed_wait_ms"), known.fact(Breakdown)["input"]


told[lambda name, *rows: waited(*rows, name=name)] = {
    "another thread that fetches batches is not the trainer": ("python", FETCH, wait(2, 8)),
    "nor is the copy of a batch": ("tf_Compute/1", ("IteratorGetNext/_3:_Send", 0, 9)),
    "a wait of distributed datasets": ("tf_data_iterator_get_next", ASYNC),
    **{
        f"the trainer's own call of {name} is a wait": (
            "python",
            marker(0, 0, 10),
            (f"{EAGER}{name}", 1, 4),
            WINDOW,
        )
        for name in ("IteratorGetNext", "IteratorGetNextSync")
    },
}


def copied(name: str, text: str) -> Transfer:
    said = {"memcpy_details": text} if text else {}
    known = facts(markers(1, step=10), work=((KERNEL, 4, 10),), copies=((name, 2, 6, said),))
    (found,) = known.fact(Transfers).directions
    return found


test_directions = Names(__file__, "names").test(lambda name: copied(name, ""))

told[copied] = {
    "a copy of pageable memory": ("MemcpyH2D", "kind_src:pageable kind_dst:device size:4000 dest:0 async:1"),
    "of pinned memory": ("MemcpyH2D", "kind_src:pinned kind_dst:device size:4000 dest:0 async:1"),
    "to pageable memory": ("MemcpyD2H", "kind_src:device kind_dst:pageable size:4000 dest:0 async:1"),
    "of memory that is not told": ("MemcpyH2D", "size:4000 dest:0 async:1"),
    "of managed memory": ("MemcpyH2D", "kind_src:managed kind_dst:device size:4000"),
    "within the device there is no memory of the host": ("MemcpyD2D", "kind_src:device kind_dst:device size:4000"),
    **{
        f"a size that is not told is unknown: {text}": ("MemcpyH2D", text)
        for text in ("kind:Unknown size:0 dest:512 async:1", "size:²", "size:-4", "x")
    },
}
told.add("no copy takes no time", lambda: facts(markers(1, 10), work=((KERNEL, 4, 10),)).fact(Transfers)[H2D])


@told
def rocms_copies_are_no_kernels() -> object:
    copies = [("__amd_rocclr_copyBuffer.kd", *at, {"correlation_id": n}) for n, at in ((5, (1, 3)), (6, (4, 5)))]
    stream = line("Stream #17(Kernel)", *copies, ("Cijk_Ailk_Bljk.kd", 5, 9))
    call = line("Host Threads/2768", ("hipMemcpyHtoDAsync", 0, 1, {"correlation_id": 5}))
    known = chart(trace([markers(1, step=10), call], gpus=[device(stream, device_vendor="AMD")]))
    return fields(known.fact(GpuUtilization).busiest, "kernel_ms copy_ms"), known.fact(Transfers)


told[lambda kind: collective().fact(kind)] = {
    "collectives by their kind": Collectives,
    "a copy behind one": Transfers,
}

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


told[lambda reads, launched: syncs(reads=reads, launched=launched)] = {
    "what is launched after the value is read waits for the host": (True, 1.0),
    # Trap: the loss is copied back at each step's end, and nobody waits for it.
    "what is launched before does not": (True, -5.0),
    "nor does it where nothing is read": (False, 1.0),
}

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


told[lambda stat: measured(stat=stat)] = {
    "a detour costs both copies and the wait": "tf_op",
    "by annotations too": "annotation",
    "and by levels": "level 0",
}


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


test_gpu = told.test("gpu")

SILENT = chart(trace([markers(2, step=10)], gpus=[v100()], errors=("vm: Failed to load libcupti",)))
OF_GPUS = (GpuUtilization, IdleGaps, Transfers, Collectives, GpuActivities)

test_what_is_not_known = unavailable(
    (lambda: chart(trace([markers(ROUNDS, 20.0)])).fact(Detours), "GPU"),
    (lambda: measured(there="", back=""), "name"),  # as in traces of JAX
    *((partial(ON_CPU.fact, kind), "used no GPU") for kind in OF_GPUS),
    (lambda: SILENT.fact(IdleGaps), "CUPTI"),  # kernels that were not recorded are not idle time
)
