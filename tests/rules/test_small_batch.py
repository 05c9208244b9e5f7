"""small-batch: both sides of each limit, and what must not be mistaken for overhead."""

from pathlib import Path

import pytest

from scripts.synthetic import samples
from scripts.synthetic.network import Network
from scripts.synthetic.run import Run
from tests.builders import line, wait
from tests.rules.kit import *
from tfdoctor.rules.execution import small_batch
from tfdoctor.rules.execution.small_batch import Limits
from tfdoctor.trace import xplane


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
    steps = replace(Steps.uniform(count, parts.step_ms), source=source)
    facts = (parts, overhead, device, steps, program, memory, framework, compiling)
    return small_batch.check(*facts, operations, eager, conversions, limits)


sick = example


def healthy() -> Verdict:
    """The same call with operations of 20 ms."""
    return example(rest=20.0)


GPU = Device(DeviceKind.GPU, 1, 1)
OF_TWO = Program(settings=RunSettings(batch_size=2))


check = partial(example, between=0.0, source=StepSource.KERAS_FIT)


def test_a_finding_from_the_limits_share_on() -> None:
    share = Limits().share
    assert kinds(check(share, 1 - share), check(0.39, 0.61), check(12.0, 360.0)) == [Finding, Healthy, Healthy]


def test_a_call_that_takes_longer_than_python_needs_has_another_cause() -> None:
    """A step that is traced again waits for tracing, not for a larger batch."""
    assert kinds(check(3.0, 0.5), check(3.1, 0.5)) == [Finding, NotApplicable]


def test_time_between_steps_counts_no_more_than_the_call() -> None:
    """A callback of 5 ms is no reason for a larger batch."""
    assert isinstance(check(0.3, 1.5, between=5.0), Healthy)
    assert {part: of for part, of, *_ in effects(check(0.6, 0.3, between=0.7)) if of} == {
        Stage.HOST: 0.6,
        Stage.BETWEEN: 0.6,
    }


def test_a_job_that_waits_for_its_input_is_not_judged() -> None:
    assert "input" in as_not_applicable(check(0.6, 0.3, input_ms=5.0)).reason


def test_an_eager_step_is_not_judged() -> None:
    eagerly = check(0.6, 0.3, program=Program(settings=RunSettings(run_eagerly=True)))
    assert kinds(eagerly, check(0.6, 0.3, source=StepSource.EAGER_GRADIENT)) == [NotApplicable, NotApplicable]


def test_fit_is_advised_steps_per_execution_first() -> None:
    first, second = as_finding(check(0.6, 0.3)).remedies
    assert first.edit_id == "steps-per-execution"
    assert "steps_per_execution=20" in first.code
    assert "learning rate" in second.action


def test_as_many_steps_as_divide_an_epoch() -> None:
    """Trap: Keras fills up the last call, and 65 steps in calls of 20 become 80."""
    for epoch, number in ((150, 15), (100, 20), (7, 7), (67, 20), (None, 20), (8, 8)):
        verdict = check(0.6, 0.3, program=Program(settings=RunSettings(steps_per_epoch=epoch)))
        assert f"steps_per_execution={number})" in first_code(verdict)
        assert effects(verdict)[0][2] == near(1 / number)


def test_a_larger_batch_is_advised_only_where_it_may_fit() -> None:
    for peak, remedies in ((70.0, 2), (71.0, 1)):
        memory = DeviceMemory((Allocator("GPU_0_bfc", 100.0, peak),))
        assert len(as_finding(check(9.0, 1.5, device=GPU, memory=memory)).remedies) == remedies


def test_on_a_gpu_the_wait_for_the_host_counts_and_is_a_ceiling() -> None:
    assert effects(check(9.0, 1.5, device=GPU)) == [(Stage.HOST, 9.0, 0.0, Bound.AT_MOST)]


def calls(step: float, begin: float, end: float, call: float) -> PythonOverhead:
    """Six steps: a wait of 0.1 ms, then an operation from ``begin`` to ``end``, all within ``call``."""
    rows = list(markers(6, step, call).rows)
    rows += [wait(n * step + 0.1, n * step + 0.2) for n in range(6)]
    rows += [executor(n * step + begin, n * step + end, 1) for n in range(6)]
    rows += [("model/mul:Mul", n * step + begin, n * step + end) for n in range(6)]
    return chart(trace([line("python", *rows)])).fact(PythonOverhead)


def test_overhead_is_the_time_before_and_after_the_operations() -> None:
    found = calls(2.0, 0.5, 1.5, 1.8)
    expected = 0.5 - 0.1 + 0.3, 0.2, 0.9
    assert (found.edges_ms, found.between_ms, found.total_ms) == near(expected, abs=1e-3)


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


def test_the_body_of_a_loop_is_no_overhead_of_the_call() -> None:
    """Trap: augmentation in NumPy between two calls, which takes as long as the batch is large."""
    for body_ms in (0.0, 4.0):
        overhead = own_loop(body_ms)
        assert (overhead.edges_ms, overhead.between_ms) == near((0.5, 0.0), abs=1e-3)


def test_the_conversion_of_what_a_call_is_given_is_no_fixed_part() -> None:
    """Trap: a session is fed a table at each step, and would be in one call of several steps, too."""
    table = Conversions((ConvertedArray("float64", (60000, 100), 0.45, 0.0, same=True),))
    assert kinds(check(), check(conversions=table)) == [Finding, Healthy]


def test_pauses_are_those_in_which_no_executor_works() -> None:
    """Two operations with 0.4 ms between them, during half of which an executor starts the second."""
    rows = list(markers(6, 2.0, 1.8).rows)
    for n in range(6):
        begin = 2.0 * n + 0.5
        rows += [("model/mul:Mul", begin, begin + 0.2), executor(begin + 0.4, begin + 0.6)]
        rows += [("model/add:AddV2", begin + 0.6, begin + 0.9)]
    overhead = chart(trace([line("python", *rows)])).fact(PythonOverhead)
    assert overhead.pauses_ms == near(0.2, abs=1e-3)


def test_overhead_is_unknown_where_the_gpus_work_was_not_recorded() -> None:
    with pytest.raises(Unavailable):
        chart(trace([markers(6, 1)], gpus=[v100()])).fact(PythonOverhead)


def examine(folder: Path) -> Result:
    recording = Recording.open(folder)
    facts = Chart([xplane.read(recording.traces[0]), recording])
    (result,) = engine.examine(facts, [Rule.from_module(small_batch)])
    return result


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


def test_compiling_is_left_to_recompilation() -> None:
    found = [check(0.6, 0.4, device=GPU, compiling=CompileTime(20, 20, 10, each)) for each in (0.0, 0.5)]
    assert kinds(*found) == [Finding, Healthy]


def test_few_steps_do_not_show_that_an_accelerator_waits_in_each() -> None:
    """Trap: the first step of a run loads libraries and kernels, whatever the size of the batch."""
    found = [check(0.0, 10.0, starting=5950.0, count=number, device=GPU) for number in (1, 2, 3)]
    assert kinds(*found) == [NotApplicable, NotApplicable, Finding]


def test_a_healthy_way_into_the_call_is_necessary() -> None:
    short, long = as_healthy(check(Limits().call_ms, 20.0)), as_healthy(check(Limits().call_ms + 0.1, 20.0))
    assert [time.of.value for time in short.necessary] == [Limits().call_ms]
    assert not long.necessary


def looping(batch: int | None, starting: float, computing: float) -> Verdict:
    """A call that Python enters in 0.5 ms, and in which the graph's threads start operations."""
    program = Program(settings=RunSettings(batch_size=batch))
    return check(0.5, computing, starting=starting, program=program)


def test_starting_operations_counts_for_a_small_batch_only() -> None:
    """Traps: 64 in an LSTM, of which starting operations takes half of the step; two large images."""
    found = [looping(batch, 3.0, 2.0) for batch in (16, 17, None)]
    assert kinds(*found, looping(2, 3.0, 30.0)) == [Finding, Healthy, Healthy, Healthy]


def test_a_larger_batch_is_the_first_advice_for_a_small_one() -> None:
    verdict = looping(2, 3.0, 1.0)
    assert "batch_size" in first_code(verdict)
    assert [left for _, _, left, _ in effects(verdict)] == [near(1 / 32)] * 2
    assert sum(of or 0.0 for _, of, *_ in effects(verdict)) == near(3.5)


def test_pauses_count_no_more_than_the_edges() -> None:
    """Trap: an operation that the trace does not show, such as a wait for another process."""
    for pauses, fixed in ((0.1, 0.9), (5.0, 1.6)):
        ((_, of, _, _),) = effects(check(0.8, 0.1, starting=1.2, pauses=pauses))
        assert of == near(fixed)


def saved(row: OperationTime, limits: Limits = Limits()) -> float:
    """How much of an operation of 1 ms a larger batch would save, beside operations that are started for 3.5 ms."""
    verdict = check(0.5, 1.0, starting=3.5, program=OF_TWO, operations=Operations((row,)), limits=limits)
    return sum(of or 0.0 for part, of, *_ in effects(verdict) if part is Stage.DEVICE)


def test_small_operations_take_no_longer_with_a_larger_batch() -> None:
    """Trap: an operation of unknown size that takes longer than a small one."""
    row = OperationTime(name="lstm/MatMul", type="MatMul", ms=1.0, calls=49.0)
    assert saved(replace(row, calls=50.0)) == near(1.0)
    assert [saved(row), saved(row, Limits(each_ms=0.03))] == near([0.0, 1.0])


def test_an_operation_of_known_size_is_small_by_its_values() -> None:
    graphs = (Operation(name="Relu", type="Relu", outputs=(("float32", (size,)),)) for size in (10_000, 10_001))
    rows = [OperationTime(name="Relu", type="Relu", ms=1.0, calls=1.0, operation=one) for one in graphs]
    assert [saved(row) for row in rows] == near([1.0, 0.0])


def test_only_the_second_change_is_called_an_alternative() -> None:
    first, second = as_finding(check(0.6, 0.3, source=StepSource.TF_DATA_LOOP)).remedies
    assert not first.action.startswith("Or ")
    assert second.action.startswith("Or use a larger batch")


def test_several_batches_in_one_call_of_the_framework() -> None:
    for name, code in (("JAX", "jax.lax.scan"), ("TensorFlow", "tf.range"), ("PyTorch/XLA", "")):
        for source in (StepSource.TF_DATA_LOOP, StepSource.MARKERS):
            (first, *_) = as_finding(check(0.6, 0.3, source=source, framework=Framework(name))).remedies
            assert (code in first.code, bool(first.code), first.edit_id) == (True, bool(code), "")
            assert ("tf." in first.code) is (name == "TensorFlow")


def test_several_steps_in_one_call_are_proposed_where_fit_is_called() -> None:
    at = Location("train.py", 12)
    assert as_finding(check(0.5, 0.4, eager=EagerWork(0.0, 0.0, 0.5, at=at))).remedies[0].at == at


@pytest.mark.parametrize(
    ("peak", "first"), [(60.0, "Use a larger batch (the device's memory was 60 % full)"), (80.0, "")]
)
def test_no_several_steps_per_call_where_calls_hold_several(peak: float, first: str) -> None:
    """Kind: a remedy that proposes what the program does already."""
    several = Steps.of(replace(step, calls=4) for step in Steps.uniform(10, 42.0).steps)
    several = replace(several, source=StepSource.KERAS_FIT)
    memory = DeviceMemory((Allocator("GPU_0_bfc", 100.0, peak),))
    step = Breakdown.of(host=9.0, device=1.5)
    facts = (step, PythonOverhead(9.0, 0.0, 0.0), GPU, several, None, memory, Framework())
    verdict = small_batch.check(*facts, None, None, None, None)
    if first:
        assert as_finding(verdict).remedies[0].action.startswith(first)
    else:
        assert "holds several steps already" in as_not_applicable(verdict).reason
