"""The host's plane: the Python thread, executors, and the threads of tf.data."""

from scripts.synthetic.run import READY, Run
from scripts.synthetic.xspace import MS, STARTED_NS, U64, US, Line, Ref, Space

ROOT = "Iterator::Root"
PREFETCH = f"{ROOT}::Prefetch"
BATCH = f"{PREFETCH}::BatchV2"
MAP = f"{BATCH}::Map"
SLICE = f"{MAP}::TensorSlice"

IDS = {ROOT: 9_212_745_469_349_545_269, PREFETCH: 16_284_187_756_486_978_649,
       BATCH: 6_099_367_121_804_410_391, MAP: 13_161_299_332_578_471_158,
       SLICE: 17_184_360_696_718_209_681}  # fmt: skip
"""Iterators' ids; those above 2**63 are stored as uint64, as TensorFlow does."""

IDS |= {path.replace("::Prefetch", ""): number for path, number in IDS.items() if path != PREFETCH}

NAMES = {ROOT: "PrefetchDataset:4", PREFETCH: "PrefetchDataset:4", BATCH: "BatchDatasetV2:2",
         MAP: "MapDataset:1", SLICE: "TensorSliceDataset:0"}  # fmt: skip
NAMES |= {path.replace("::Prefetch", ""): name for path, name in NAMES.items() if path not in (ROOT, PREFETCH)}

RUN_ID = -5_558_148_104_225_379_935
"""The id of the first step's function call; half of all ids are negative."""

FUNCTION_ID = 700_000
"""The id of the first call of the pipeline's function."""

MOST_ELEMENTS = 32
"""Elements of a batch that are recorded one by one; those of larger batches take longer instead."""


class Host:
    """The plane of the host and its threads."""

    def __init__(self, space: Space, batch: int, replicas: int = 1) -> None:
        self.batch = batch
        self.plane = space.plane("/host:CPU", 49)
        self.python = self.plane.line(201, "python")
        self.executor = self.plane.line(202, "tf_Compute/202")
        self.consumer = self.plane.line(203, "tf_data_iterator_get_next/203")
        self.producer = self.plane.line(204, "tf_data_iterator_resource/204")
        self.functions = self.plane.line(205, "tf_data_private_threadpool/205")
        more = (self.plane.line(209 + n, f"tf_Compute/{209 + n}") for n in range(1, replicas))
        self.executors = (self.executor, *more)

    def call(self, number: int, start: int, length: int) -> None:
        """Record one call of the training step on the Python thread."""
        self.python.add("train", start, length, step_num=number, _r=1, steps=1)
        inner = length - 20 * US
        name = "multi_step_on_iterator"
        self.python.add(name, start + 5 * US, inner, tf_function_call=Ref("notTraced-nonXla"), tracing_count=1)
        eager = Ref("__inference_multi_step_on_iterator_3296")
        self.python.add("EagerExecute", start + 7 * US, inner - 5 * US, eager_op=eager, is_func=1)
        self.python.add(
            "FunctionRun", start + 10 * US, 8 * US, id=RUN_ID + number, _r=1, _pt=2,
            _p=U64(5000 + number),
        )  # fmt: skip

    def execute(self, executor: Line, number: int, start: int, length: int) -> None:
        """Record the part of an executor's work that launches a step's operations."""
        executor.add(
            "ExecutorState::Process", start, length, id=RUN_ID + number, iter_num=0, _ct=2,
            _c=5000 + number,
        )  # fmt: skip

    def wait(self, number: int, start: int, length: int, size: int) -> None:
        """Record the consumer's wait for a batch of ``size`` bytes."""
        self.consumer.add(
            "IteratorGetNextOp::DoCompute", start, length, id=RUN_ID + number, iter_num=0,
            element_size=size,
        )  # fmt: skip
        _iterator(self.consumer, ROOT, start + 2 * US, length - 4 * US, cpu_budget=8)
        _iterator(self.consumer, PREFETCH, start + 4 * US, length - 8 * US, buffer_limit=1)
        self.consumer.add("PrefetchConsume", start + length - 6 * US, US, element_id=number)

    def make(self, number: int, start: int, length: int, size: int) -> None:
        """Record a consumer that produces its batch itself, without prefetch."""
        self.consumer.add(
            "IteratorGetNextOp::DoCompute", start, length, id=RUN_ID + number, iter_num=0,
            element_size=size,
        )  # fmt: skip
        self.consumer.add(ROOT, start + 2 * US, length - 4 * US, name=Ref(NAMES[BATCH]), id=_id(ROOT))
        self._batch(self.consumer, direct(BATCH), number, start + 3 * US, length - 6 * US)

    def compile(self, start: int, length: int) -> None:
        """Record that XLA compiles a program for the GPU."""
        self.executor.add("NVPTXCompiler::RunBackend", start, length)

    def allocate(self, at: int, share: float, total: int) -> None:
        """Record an allocation that leaves so much of the GPU's memory in use."""
        used = int(share * total)
        self.executor.add(
            "MemoryAllocation", at, 0, allocator_name=Ref("GPU_0_bfc"), bytes_allocated=used,
            bytes_available=total - used, bytes_reserved=0, peak_bytes_in_use=used,
        )  # fmt: skip

    def produce(self, batches: int, first: int, every: int, work: int) -> None:
        """Record how batches are produced: by one sequential map, element after element.

        The trace ends with the last step, during the batch after it; unfinished work is not recorded. The
        first batch is ready at ``first``, then one every ``every`` ps; each takes ``work`` ps.
        """
        for number in range(batches + 1):
            start, end = first + number * every - work, (batches + 1) * every
            if start + work <= end:
                self.producer.add("PrefetchProduce", start, work, element_id=number)
            self._batch(self.producer, BATCH, number, start + US, work - 2 * US, until=end)

    def _batch(self, line: Line, path: str, number: int, start: int, length: int, until: int = 2**63) -> None:
        """Record a batch and its elements on a thread, without work that ends after the trace."""
        if start + length + US <= until:
            _iterator(line, path, start, length, batch_size=self.batch)
        elements = min(self.batch, MOST_ELEMENTS)
        element_ps = (length - 10 * US) // elements
        for element in range(elements):
            at = start + 4 * US + element * element_ps
            if at + element_ps <= until:
                call = FUNCTION_ID + number * elements + element
                self._element(line, path, call, at, element_ps)

    def _element(self, line: Line, batch: str, call: int, start: int, length: int) -> None:
        path = f"{batch}{MAP.removeprefix(BATCH)}"
        _iterator(line, path, start, length - US // 2)
        _iterator(line, f"{path}::TensorSlice", start + US // 2, US // 2)
        line.add("InstantiatedCapturedFunction::Run", start + US, length - 2 * US, id=call)
        self.functions.add("ExecutorState::Process", start + 2 * US, length - 4 * US, id=call, iter_num=0)
        self.functions.add("decode/DecodeJpeg:DecodeJpeg", start + 3 * US, length - 6 * US)

    def end(self, at: int) -> None:
        """Record the event with which tfdoctor's agent ends the last step."""
        self.python.add("tfdoctor_end", at, US)


def direct(path: str) -> str:
    """Return an iterator's path in a pipeline without prefetch."""
    return path.replace("::Prefetch", "")


def _iterator(line: Line, name: str, start: int, length: int, **stats: int) -> None:
    parent = name.rpartition("::")[0]
    above = {"parent_id": _id(parent)} if parent in IDS else {}
    line.add(name, start, length, name=Ref(NAMES[name]), id=_id(name), **above, **stats)


def _id(iterator: str) -> int:
    number = IDS[iterator]
    return U64(number) if number >= 2**63 else number


def input_work(run: Run, step: int) -> int:
    """Return the time to produce a batch, in ps: the whole step if the step waits for it.

    Raises:
        ValueError: the time given is longer than a step that does not wait.
    """
    work = round(run.work_ms * MS)
    if work > step:
        raise ValueError(f"a step of {step / MS:.3f} ms waits for batches that take {run.work_ms} ms")
    if work:
        return work
    return step - 20 * US if run.input_ms * MS > READY else step * 6 // 10


def environment(space: Space) -> None:
    """Add the plane with the absolute time."""
    space.plane(
        "Task Environment", profile_start_time=U64(STARTED_NS), profile_stop_time=U64(STARTED_NS + 1_000_000_000)
    )
