"""small-batch: both sides of each limit, and what must not be mistaken for overhead."""

from scripts.synthetic import samples
from scripts.synthetic.network import Network
from scripts.synthetic.run import Run
from tests.rules.kit import *
from tfdoctor.rules.execution import small_batch
from tfdoctor.rules.execution.small_batch import Limits

GPU = Device(DeviceKind.GPU, 1, 1)
OF_TWO = Program(settings=RunSettings(batch_size=2))


def example(  # noqa: PLR0913 - one argument for each fact of the rule
    edges: float = 0.55, rest: float = 0.4, *, between: float = 0.05, input_ms: float = 0.0, pauses: float = 0.0,
    starting: float = 0.0, count: int = 20, source: StepSource = StepSource.MARKERS,
    device: Device = Device(DeviceKind.CPU, 1, 1), program: Program | None = None,
    memory: DeviceMemory | None = None, framework: Framework = Framework(), compiling: CompileTime | None = None,
    operations: Operations | None = None, eager: EagerWork | None = None, conversions: Conversions | None = None,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """A step of 1 ms whose operations take 0.4 ms."""
    host = edges + starting
    parts = Breakdown.of(host=host, device=rest, between=between, input=input_ms)
    overhead = PythonOverhead(edges, between, pauses)
    steps = replace(even_steps(count, parts.step_ms), source=source)
    facts = (parts, overhead, device, steps, program, memory, framework, compiling)
    return small_batch.check(*facts, operations, eager, conversions, limits)


def looping(batch: int | None, starting: float, computing: float) -> Verdict:
    """A call that Python enters in 0.5 ms, and in which the graph's threads start operations."""
    program = Program(settings=RunSettings(batch_size=batch))
    return check(0.5, computing, starting=starting, program=program)


def beside(row: OperationTime, limits: Limits = Limits()) -> Verdict:
    """An operation of 1 ms beside operations that are started for 3.5 ms."""
    return check(0.5, 1.0, starting=3.5, program=OF_TWO, operations=Operations((row,)), limits=limits)


def in_calls_of_several(peak: float) -> Verdict:
    several = Steps.of(replace(step, calls=4) for step in even_steps(10, 42.0).steps)
    several = replace(several, source=StepSource.KERAS_FIT)
    memory = DeviceMemory((Allocator("GPU_0_bfc", 100.0, peak),))
    facts = (Breakdown.of(host=9.0, device=1.5), PythonOverhead(9.0, 0.0, 0.0), GPU, several)
    return small_batch.check(*facts, None, memory, Framework(), None, None, None, None)


def calls(step: float, begin: float, end: float, call: float) -> PythonOverhead:
    """Six steps: a wait of 0.1 ms, then an operation from ``begin`` to ``end``, all within ``call``."""
    rows = list(markers(6, step, call).rows)
    rows += [wait(n * step + 0.1, n * step + 0.2) for n in range(6)]
    rows += [executor(n * step + begin, n * step + end, 1) for n in range(6)]
    rows += [("model/mul:Mul", n * step + begin, n * step + end) for n in range(6)]
    return chart(trace([line("python", *rows)])).fact(PythonOverhead)


def own_loop(body_ms: float) -> PythonOverhead:
    """Calls of a function of 1 ms, half of it an operation; the mark lasts until the next batch."""
    rows, step_ms = [], 1.0 + body_ms
    for n in range(8):
        begin = step_ms * n
        rows.append(marker(n, begin, begin + step_ms))
        rows.append(("step", begin, begin + 1.0, {"tf_function_call": "notTraced-nonXla"}))
        rows += [executor(begin + 0.25, begin + 0.75), ("a/mul:Mul", begin + 0.25, begin + 0.75)]
    found = chart(trace([line("python", *rows)]))
    assert found.fact(Steps).source is not StepSource.KERAS_FIT
    return found.fact(PythonOverhead)


def examine(folder: Path) -> Result:
    recording = Recording.open(folder)
    facts = Chart([xplane.read(recording.traces[0]), recording])
    return examined(small_batch, facts)


sick = example
healthy = described("The same call with operations of 20 ms.", example, rest=20.0)
check = partial(example, between=0.0, source=StepSource.KERAS_FIT)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["overhead of two fifths, less, and 12 of 372 ms"] = check(0.4, 0.6), check(0.39, 0.61), check(12.0, 360.0)
    told["a call of Python, and a longer one, such as tracing"] = [check(edges, 0.5) for edges in (3.0, 3.1)]
    told["a callback of 5 ms between steps is no reason for a larger batch"] = check(0.3, 1.5, between=5.0)
    told["time between steps counts no more than the call"] = check(0.6, 0.3, between=0.7)
    told["a job that waits for its input"] = check(0.6, 0.3, input_ms=5.0)
    told["eager steps of fit"] = check(0.6, 0.3, program=Program(settings=RunSettings(run_eagerly=True)))
    told["eager steps of a loop"] = check(0.6, 0.3, source=StepSource.EAGER_GRADIENT)
    for epoch in (150, 100, 7, 67, None, 8):
        told[f"trap: Keras fills up the last call, so as many steps as divide an epoch of {epoch}"] = check(
            0.6, 0.3, program=Program(settings=RunSettings(steps_per_epoch=epoch))
        )
    for peak in (70.0, 71.0):
        memory = DeviceMemory((Allocator("GPU_0_bfc", 100.0, peak),))
        told[f"on a GPU the wait for the host is a ceiling; a larger batch may fit: {peak} % are full"] = check(
            9.0, 1.5, device=GPU, memory=memory
        )
    table = Conversions((ConvertedArray("float64", (60000, 100), 0.45, 0.0, same=True),))
    told["trap: a session is fed a table, as in one call of several steps"] = check(conversions=table)
    told["compiling is left to recompilation"] = check(0.6, 0.4, device=GPU, compiling=CompileTime(20, 20, 10, 0.5))
    told["trap: the first step of a run loads libraries, whatever the batch: one, two and three steps of a GPU"] = [
        check(0.0, 10.0, starting=5950.0, count=number, device=GPU) for number in (1, 2, 3)
    ]
    told["a healthy way into the call is necessary up to a limit"] = check(3.0, 20.0), check(3.1, 20.0)


@golden_cases
def test_starting_operations(told: Cases) -> None:
    told["16 examples, in an LSTM of which starting operations takes half of the step"] = looping(16, 3.0, 2.0)
    told["trap: 17 and more examples, or an unknown number"] = looping(17, 3.0, 2.0), looping(None, 3.0, 2.0)
    told["trap: two large images"] = looping(2, 3.0, 30.0)
    told["a larger batch is the first advice for a small one"] = looping(2, 3.0, 1.0)
    told["pauses count"] = check(0.8, 0.1, starting=1.2, pauses=0.1)
    told["trap: an unseen operation pauses for longer than the edges"] = check(0.8, 0.1, starting=1.2, pauses=5.0)
    row = took("lstm/MatMul", "MatMul", 1.0, calls=49.0)
    told["small operations take no longer with a larger batch: 0.02 ms each"] = beside(replace(row, calls=50.0))
    told["trap: an operation of unknown size that takes longer than a small one"] = beside(row)
    told["an operation of unknown size is small by another limit"] = beside(row, Limits(each_ms=0.03))
    for size in (10_000, 10_001):
        relu = Operation(name="Relu", type="Relu", outputs=(("float32", (size,)),))
        told[f"an operation of known size is small by its values: {size}"] = beside(
            took("Relu", "Relu", 1.0, calls=1.0, operation=relu)
        )


@golden_cases
def test_several_steps_in_a_call(told: Cases) -> None:
    for name in ("TensorFlow", "JAX", "PyTorch/XLA"):
        for source in (StepSource.TF_DATA_LOOP, StepSource.MARKERS):
            told[f"{name}, by {source}"] = check(0.6, 0.3, source=source, framework=Framework(name=name))
    eager = EagerWork(0.0, 0.0, 0.5, at=script(12))
    told["they are proposed where fit is called"] = check(0.5, 0.4, eager=eager)
    for peak in (60.0, 80.0):
        told[f"trap: calls hold several steps already, {peak:g} % of memory are full"] = in_calls_of_several(peak)


@golden_cases
def test_overhead(told: Cases) -> None:
    found = calls(2.0, 0.5, 1.5, 1.8)
    told["the time before and after the operations"] = found, found.edges_ms + found.between_ms
    told["trap: augmentation in NumPy between two calls, which takes as long as the batch is large"] = own_loop(0.0)
    told[...] = own_loop(4.0)
    rows = list(markers(6, 2.0, 1.8).rows)
    for begin in (2.0 * n + 0.5 for n in range(6)):
        rows += [("model/mul:Mul", begin, begin + 0.2), executor(begin + 0.4, begin + 0.6)]
        rows += [("model/add:AddV2", begin + 0.6, begin + 0.9)]
    paused = chart(trace([line("python", *rows)])).fact(PythonOverhead)
    told["two operations with 0.4 ms between them, during half of which an executor starts the second"] = paused
    told["unrecorded work of a GPU"] = lambda: chart(trace([markers(6, 1)], gpus=[v100()])).fact(PythonOverhead)


def test_a_synthetic_v100_waits_for_its_launches(tmp_path: Path) -> None:
    """40 us for each launch of a kernel of 2 us: the time without compute or copies is the host's."""
    truth = samples.write(Run(device="v100", dispatch_us=40.0, network=Network(batch=1)), tmp_path)
    result = examine(tmp_path)
    assert isinstance(result.outcome, Finding)
    (effect,) = result.outcome.effects
    assert effect.of is not None
    idle = truth.step_ms - truth.compute_ms - truth.between_ms - truth.input_wait_ms
    assert 0.9 * idle <= effect.of.value <= 1.02 * idle
    assert result.saving is not None
    assert result.saving.bound is Bound.AT_MOST


def test_a_synthetic_a100_that_computes_is_healthy(tmp_path: Path) -> None:
    samples.write(Run(device="a100", precision="bf16", network=Network(batch=256)), tmp_path)
    assert isinstance(examine(tmp_path).outcome, Healthy)
