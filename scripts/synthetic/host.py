"""The host's plane: the Python thread, an executor, and tf.data at work."""

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

NAMES = {ROOT: "PrefetchDataset:4", PREFETCH: "PrefetchDataset:4", BATCH: "BatchDatasetV2:2",
         MAP: "MapDataset:1", SLICE: "TensorSliceDataset:0"}  # fmt: skip

RUN_ID = -5_558_148_104_225_379_935
"""Of the first step's function call; ids are negative as often as not."""

FUNCTION_ID = 700_000
"""Of the first call of the pipeline's function."""


class Host:
    """The plane and its threads."""

    def __init__(self, space: Space, batch: int) -> None:
        self.batch = batch
        self.plane = space.plane("/host:CPU", 49)
        self.python = self.plane.line(201, "python")
        self.executor = self.plane.line(202, "tf_Compute/202")
        self.consumer = self.plane.line(203, "tf_data_iterator_get_next/203")
        self.producer = self.plane.line(204, "tf_data_iterator_resource/204")
        self.functions = self.plane.line(205, "tf_data_private_threadpool/205")

    def call(self, number: int, start: int, length: int) -> None:
        """Record one call of the training step on the Python thread."""
        self.python.add("train", start, length, step_num=number, _r=1, steps=1)
        inner = length - 20 * US
        name = "multi_step_on_iterator"
        self.python.add(
            name, start + 5 * US, inner, tf_function_call=Ref("notTraced-nonXla"), tracing_count=1
        )
        eager = Ref("__inference_multi_step_on_iterator_3296")
        self.python.add("EagerExecute", start + 7 * US, inner - 5 * US, eager_op=eager, is_func=1)
        self.python.add(
            "FunctionRun", start + 10 * US, 8 * US, id=RUN_ID + number, _r=1, _pt=2,
            _p=U64(5000 + number),
        )  # fmt: skip

    def execute(self, number: int, start: int, length: int) -> None:
        """Record the executor's stretch in which a step's operations are launched."""
        self.executor.add(
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

    def produce(self, batches: int, first: int, every: int, work: int) -> None:
        """Record how batches are made: one sequential map, element after element.

        The trace ends with the last step, in the midst of the batch after it: what has not ended
        by then is not recorded. The first batch is ready at ``first``, another ``every`` so many
        ps; each takes ``work`` ps.
        """
        for number in range(batches + 1):
            self._batch(number, first + number * every - work, work, until=(batches + 1) * every)

    def _batch(self, number: int, start: int, length: int, until: int) -> None:
        if start + length <= until:
            self.producer.add("PrefetchProduce", start, length, element_id=number)
            _iterator(self.producer, BATCH, start + US, length - 2 * US, batch_size=self.batch)
        each = (length - 12 * US) // self.batch
        for element in range(self.batch):
            at = start + 5 * US + element * each
            if at + each <= until:
                self._element(FUNCTION_ID + number * self.batch + element, at, each)

    def _element(self, call: int, start: int, length: int) -> None:
        _iterator(self.producer, MAP, start, length - US // 2)
        _iterator(self.producer, SLICE, start + US // 2, US // 2)
        self.producer.add("InstantiatedCapturedFunction::Run", start + US, length - 2 * US, id=call)
        self.functions.add(
            "ExecutorState::Process", start + 2 * US, length - 4 * US, id=call, iter_num=0
        )
        self.functions.add("decode/DecodeJpeg:DecodeJpeg", start + 3 * US, length - 6 * US)

    def end(self, at: int) -> None:
        """Record the mark by which tfdoctor's capture closes the last step."""
        self.python.add("tfdoctor_end", at, US)


def _iterator(line: Line, name: str, start: int, length: int, **stats: int) -> None:
    parent = name.rpartition("::")[0]
    above = {"parent_id": _id(parent)} if parent in IDS else {}
    line.add(name, start, length, name=Ref(NAMES[name]), id=_id(name), **above, **stats)


def _id(iterator: str) -> int:
    number = IDS[iterator]
    return U64(number) if number >= 2**63 else number


def input_work(run: Run, step: int) -> int:
    """Return how long a batch takes to make, ps: the whole step where the step waits for it."""
    return step - 20 * US if run.input_ms * MS > READY else step * 6 // 10


def environment(space: Space) -> None:
    """Add the plane that has the absolute time."""
    space.plane(
        "Task Environment",
        profile_start_time=U64(STARTED_NS),
        profile_stop_time=U64(STARTED_NS + 1_000_000_000),
    )
