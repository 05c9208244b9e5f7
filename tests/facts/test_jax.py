"""Runs of JAX, Keras on JAX and PyTorch/XLA: what is told of them, and what is not.

The two traces were recorded on 2026-11-21 with JAX 0.10.2 on a CPU with two cores, by scripts of ours: a
float32 classifier of Keras 3.15.1 (a convolution, a depthwise one, a dense layer; batches of 32, one
epoch of ten steps after a first one) inside `jax.profiler.trace`; and a perceptron of JAX alone, whose
twelve steps are marked by `StepTraceAnnotation`, sleep 4 ms and wait for the loss. Paths of the machine,
programs that do not train and events without duration were taken out.
"""

from tests.facts.kit import *
from tfdoctor.diagnose import diagnose
from tfdoctor.rules import all_rules

KERAS, ANNOTATED = "keras-on-jax-cpu", "jax-cpu-annotated"
PIPELINE_RULES = ("input-bound", "missing-prefetch", "python-input", "sequential-map")


def test_the_framework_and_how_it_is_known() -> None:
    found = recorded_trace(KERAS).fact(Framework)
    assert (found.title, found.evidence) == ("Keras on JAX 0.10.2", "the profiler recorded JAX 0.10.2")
    assert recorded_trace(ANNOTATED).fact(Framework).title == "JAX 0.10.2"


def test_marked_steps_that_wait_for_their_result() -> None:
    steps, parts = recorded_trace(ANNOTATED).fact(Steps), recorded_trace(ANNOTATED).fact(Breakdown)
    assert (steps.source, steps.count) == ("markers", 12)
    assert min(steps.median_ms, parts["host"]) > 4.0  # the sleep
    assert parts["device"] > 0.0
    assert parts.step_ms == pytest.approx(steps.median_ms)


def test_calls_that_only_queue_the_work_are_no_steps() -> None:
    """Keras' calls return after some 0.1 ms; the runs that they queued take 38 ms each."""
    steps = recorded_trace(KERAS).fact(Steps)
    assert (steps.source, steps.program, steps.count) == ("module-runs", "train_step", 10)
    assert 30.0 < steps.median_ms < 45.0
    assert recorded_trace(KERAS).fact(Breakdown)["device"] > 0.6 * steps.median_ms


def test_operations_bear_the_frameworks_names_and_flops() -> None:
    rows = {row.ran[0]: row for row in recorded_trace(KERAS).fact(Operations).rows}
    forward, depthwise = rows["conv_general_dilated.5"], rows["conv_general_dilated.6"]
    assert forward.name == "jit(train_step)/jvp(conv2d)/conv_general_dilated"
    assert (forward.is_matrix, forward.flops) == (True, 2 * 32 * 14 * 14 * 16 * 3 * 3 * 3)
    assert forward.calls == pytest.approx(1.0, abs=0.15)
    assert "depthwise_conv2d" in depthwise.name
    assert (depthwise.is_depthwise, depthwise.is_matrix) == (True, False)
    assert depthwise.flops == 2 * 32 * 12 * 12 * 16 * 3 * 3


@each(KERAS, ANNOTATED)
def test_rules_of_the_pipeline_do_not_apply_and_say_why(name: str) -> None:
    diagnosis = diagnose.diagnosed(recorded_trace(name), all_rules(), "run")
    outcomes = {result.rule.name: result.outcome for result in diagnosis.results}
    for outcome in map(outcomes.__getitem__, PIPELINE_RULES):
        assert isinstance(outcome, NotApplicable)
        assert "JAX 0.10.2" in outcome.reason
        assert "no tf.data pipeline" in outcome.reason
    # Nobody is told to record JAX with tfdoctor.
    told = [(result.outcome, result.saving) for result in diagnosis.results]
    said = repr((told, diagnosis.trust, diagnosis.steps, diagnosis.machine, diagnosis.unrecorded))
    assert "tfdoctor profile" not in said
    assert "--steps" not in said


# In a few literals


def calls(count: int, each: float, length: float, function: str = "train_step") -> list[Row]:
    name = f"PjitFunction({function})"
    return [(name, n * each, n * each + length) for n in range(count)]


def gpu_work(count: int, each: float) -> Machine:
    rows = [("fusion", n * each, n * each + 0.9 * each) for n in range(count)]
    return device(line("Stream #1(Compute)", *rows), gpu_device_name="GPU")


def marked(count: int, each: float, length: float, name: str) -> list[Row]:
    return [(name, n * each, n * each + length, {"_r": 1, "step_num": n}) for n in range(count)]


def of_python(*rows: Row, gpus: Iterable[Machine] = ()) -> Chart:
    return chart(trace([line("python", *rows)], gpus))


test_the_framework_by_its_events = Names(__file__, "frameworks").test(
    lambda event: fields(of_python((event, 0, 1)).fact(Framework), "name evidence")
)


@cases(("PjitFunction(f)", "jax.profiler.StepTraceAnnotation"), ("PjRtComputationClient::Get", "xp.StepTrace"))
def test_without_steps_it_says_how_such_a_run_is_recorded(event: str, how: str) -> None:
    one = of_python((event, 0, 1))
    with pytest.raises(Unavailable, match=how):
        one.fact(Steps)
    (doubt,) = [d for d in one.fact(Quality).doubts if "no training step" in d.what]
    assert how in doubt.remedy


def of_markers(name: str, each: float = 10, *gpus: Machine) -> object:
    """How many steps there are where the host calls a function in each of six, and how long one is."""
    rows = [*marked(6, each, 0.9 * each, name), *calls(6, each, each / 2, "f")]
    found = of_python(*rows, gpus=gpus).get(Steps)
    return found and (found.count, found.median_ms)


test_which_markers_are_steps = answers(
    of_markers,
    *((name, (6, 10.0)) for name in ("train", "Training_Step", "my_loop")),
    *((name, None) for name in ("eval", "epoch")),
    ("train", 10, gpu_work(6, 10), (6, 10.0)),
    ("train", 1, gpu_work(6, 10), None),  # the host ran ahead
)


def test_tf_data_beside_jax_is_a_pipeline_all_the_same() -> None:
    found = of_python(("PjitFunction(f)", 0, 1), ("Iterator::Root", 1, 2)).fact(Framework)
    assert (found.name, found.no_pipeline) == (JAX, "")


def test_what_tensorflow_recorded_is_no_foreign_run() -> None:
    one = of_python(("FunctionRun", 0, 1))
    assert not one.fact(Framework).foreign
    with pytest.raises(Unavailable, match=r"no training step|tfdoctor profile"):
        one.fact(InputPipeline)
