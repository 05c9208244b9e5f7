"""Runs of JAX, Keras on JAX and PyTorch/XLA: what is told of them, and what is not.

The two traces were recorded on 2026-11-21 with JAX 0.10.2 on a CPU with two cores, by scripts of ours: a
float32 classifier of Keras 3.15.1 (a convolution, a depthwise one, a dense layer; batches of 32, one
epoch of ten steps after a first one) inside `jax.profiler.trace`; and a perceptron of JAX alone, whose
twelve steps are marked by `StepTraceAnnotation`, sleep 4 ms and wait for the loss. Paths of the machine,
programs that do not train and events without duration were taken out.
"""

import gzip

from tests.facts.kit import *
from tfdoctor.diagnose import diagnose
from tfdoctor.rules import all_rules

OWN_TRACES = Path(__file__).parent / "traces"
KERAS, ANNOTATED = "keras-on-jax-cpu", "jax-cpu-annotated"

PIPELINE_RULES = ("input-bound", "missing-prefetch", "python-input", "sequential-map")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recording]:
    found = {}
    for name in (KERAS, ANNOTATED):
        folder = tmp_path_factory.mktemp(name)
        data = gzip.decompress((OWN_TRACES / f"{name}.xplane.pb.gz").read_bytes())
        (folder / "host.xplane.pb").write_bytes(data)
        found[name] = Recording.open(folder)
    return found


@pytest.fixture(scope="module")
def charts(opened: dict[str, Recording]) -> dict[str, Chart]:
    return {name: Chart([xplane.read(one.traces[0]), one]) for name, one in opened.items()}


def test_the_framework_and_how_it_is_known(charts: dict[str, Chart]) -> None:
    found = charts[KERAS].fact(Framework)
    assert (found.title, found.evidence) == ("Keras on JAX 0.10.2", "the profiler recorded JAX 0.10.2")
    assert charts[ANNOTATED].fact(Framework).title == "JAX 0.10.2"


def test_marked_steps_that_wait_for_their_result(charts: dict[str, Chart]) -> None:
    steps, parts = charts[ANNOTATED].fact(Steps), charts[ANNOTATED].fact(Breakdown)
    assert (steps.source, steps.count) == ("markers", 12)
    assert steps.median_ms > 4.0
    assert parts["host"] > 4.0  # the sleep
    assert parts["device"] > 0.0
    assert parts.step_ms == pytest.approx(steps.median_ms)


def test_calls_that_only_queue_the_work_are_no_steps(charts: dict[str, Chart]) -> None:
    """Keras' calls return after some 0.1 ms; the runs that they queued take 38 ms each."""
    steps = charts[KERAS].fact(Steps)
    assert (steps.source, steps.program, steps.count) == ("module-runs", "train_step", 10)
    assert 30.0 < steps.median_ms < 45.0
    assert charts[KERAS].fact(Breakdown)["device"] > 0.6 * steps.median_ms


def test_operations_bear_the_frameworks_names_and_flops(charts: dict[str, Chart]) -> None:
    rows = {row.ran[0]: row for row in charts[KERAS].fact(Operations).rows}
    forward, depthwise = rows["conv_general_dilated.5"], rows["conv_general_dilated.6"]
    assert forward.name == "jit(train_step)/jvp(conv2d)/conv_general_dilated"
    assert (forward.is_matrix, forward.flops) == (True, 2 * 32 * 14 * 14 * 16 * 3 * 3 * 3)
    assert forward.calls == pytest.approx(1.0, abs=0.15)
    assert "depthwise_conv2d" in depthwise.name
    assert (depthwise.is_depthwise, depthwise.is_matrix) == (True, False)
    assert depthwise.flops == 2 * 32 * 12 * 12 * 16 * 3 * 3


@each(KERAS, ANNOTATED)
def test_rules_of_the_pipeline_do_not_apply_and_say_why(name: str, opened: dict[str, Recording]) -> None:
    diagnosis = diagnose.diagnose(opened[name], all_rules(), "run", ask_xprof=False)
    outcomes = {result.rule.name: result.outcome for result in diagnosis.results}
    for rule in PIPELINE_RULES:
        outcome = outcomes[rule]
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


def of_event(event: str) -> object:
    return fields(chart(trace([line("python", (event, 0, 1))])).fact(Framework), "name evidence")


test_the_framework_by_its_events = Names(__file__, "frameworks").test(of_event)


@cases(("PjitFunction(f)", "jax.profiler.StepTraceAnnotation"), ("PjRtComputationClient::Get", "xp.StepTrace"))
def test_without_steps_it_says_how_such_a_run_is_recorded(event: str, how: str) -> None:
    one = chart(trace([line("python", (event, 0, 1))]))
    with pytest.raises(Unavailable, match=how):
        one.fact(Steps)
    (doubt,) = [d for d in one.fact(Quality).doubts if "no training step" in d.what]
    assert how in doubt.remedy


@cases(("train", 6), ("Training_Step", 6), ("my_loop", 6), ("eval", 0), ("epoch", 0))
def test_which_markers_are_steps(name: str, count: int) -> None:
    rows = [*marked(6, 10, 9, name), *calls(6, 10, 9, "f")]
    one = chart(trace([line("python", *rows)]))
    if count:
        assert one.fact(Steps).count == count
    else:
        with pytest.raises(Unavailable):
            one.fact(Steps)


@cases((10, 10.0), (1, None))
def test_markers_that_the_host_ran_ahead_with_are_none(each: float, steps: float | None) -> None:
    rows = [*marked(6, each, 0.9 * each, "train"), *calls(6, each, each / 2)]
    one = chart(trace([line("python", *rows)], gpus=[gpu_work(6, 10)]))
    if steps:
        assert one.fact(Steps).median_ms == pytest.approx(steps)
    else:
        with pytest.raises(Unavailable, match="ran ahead of the device"):
            one.fact(Steps)


def test_tf_data_beside_jax_is_a_pipeline_all_the_same() -> None:
    rows = [("PjitFunction(f)", 0, 1), ("Iterator::Root", 1, 2)]
    found = chart(trace([line("python", *rows)])).fact(Framework)
    assert (found.name, found.no_pipeline) == (JAX, "")


def test_what_tensorflow_recorded_is_no_foreign_run() -> None:
    one = chart(trace([line("python", ("FunctionRun", 0, 1))]), recording())
    assert not one.fact(Framework).foreign
    with pytest.raises(Unavailable, match=r"no training step|tfdoctor profile"):
        one.fact(InputPipeline)
