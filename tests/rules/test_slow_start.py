"""slow-start: other imports and repeated loads are found, TensorFlow's import and one model are not."""

import pytest

from tests.rules.kit import *
from tests.rules.run_facts import line, made
from tfdoctor.recording.run_log import RunLog, RunProcess
from tfdoctor.rules.run import slow_start
from tfdoctor.rules.run.slow_start import StartLoad, check

IMPORTED = run_line(Phase.IMPORTS, Location("serve.py", 1), 6_000.0, "tensorflow", repeats=False)


def example(
    *calls: MadeCall, lines: tuple[RunLine, ...] = (IMPORTED,), total_ms: float = 60_000.0,
    load: StartLoad | None = None, program: Program | None = None, traces: RunTraces | None = None,
) -> Verdict:  # fmt: skip
    """Judge a run with these imports and calls, whose other time is in training steps."""
    times = {Phase.BUILDING: sum(call.ms for call in calls)}
    for one in lines:
        times[one.phase] = times.get(one.phase, 0.0) + one.ms
    return check(divided_run(total_ms, times, *lines), RunCalls(calls), load, program, traces)


def sick() -> Verdict:
    """A loop loads the model before each of 40 predictions: 32 of 60 s."""
    at = Location("serve.py", 14)
    return example(made_call(RunCall.BUILD, at, 40, 800.0, name="load_model", looped=True))


def healthy() -> Verdict:
    """TensorFlow is imported in 6 s and one model is built in 2 s, in a run of 36 s."""
    at = Location("serve.py", 14)
    return example(made_call(RunCall.BUILD, at, 1, 2_000.0, name="Sequential"), total_ms=36_000.0)


def imported(number: int, ms: float, module: str) -> RunLine:
    return line(Phase.IMPORTS, number, ms, module, repeats=False)


def judged(*lines: RunLine, **more: Any) -> Verdict:
    return example(*more.pop("calls", ()), lines=lines, **more)


def test_the_import_of_tensorflow_is_necessary_however_short_the_run_is() -> None:
    assert "6.00 s" in as_healthy(judged(IMPORTED, total_ms=8_000.0)).summary


def test_a_very_slow_import_of_tensorflow_is_a_note() -> None:
    assert isinstance(judged(imported(2, 14_999.0, "tensorflow")), Healthy)
    assert as_finding(judged(imported(2, 15_000.0, "keras"))).severity is Severity.NOTE


def test_another_module_is_a_note_at_its_line() -> None:
    verdict = as_finding(judged(IMPORTED, imported(3, 4_000.0, "transformers")))
    assert verdict.severity is Severity.NOTE
    assert verdict.remedies[0].at == Location("train.py", 3)
    assert "import transformers" in verdict.remedies[0].code
    assert verdict.run_effects[0].of.value == near(4_000.0)


BUSY = StartLoad(usable=2.0, run=0.1, others=1.9)


def test_imports_beside_other_programs_are_not_judged() -> None:
    slow = imported(3, 40_000.0, "transformers")
    for load in (StartLoad(4.0, 1.0, 1.9), StartLoad(2.0, 1.0, 0.5)):  # one is free
        assert isinstance(judged(IMPORTED, slow, load=load), Finding)
    assert "other programs used 1.9 of 2 cores" in as_not_applicable(judged(IMPORTED, slow, load=BUSY)).reason
    assert isinstance(judged(IMPORTED, load=BUSY), Healthy)


def test_loads_in_a_loop_count_beside_other_programs() -> None:
    loads = made(RunCall.BUILD, 14, 40, 800.0, name="load_model", looped=True)
    verdict = as_finding(judged(imported(3, 40_000.0, "transformers"), calls=(loads,), load=BUSY))
    assert {effect.subject for effect in verdict.run_effects} == {"train.py:14"}


def test_other_imports_are_healthy() -> None:
    """They are short, or of a module that is not known, which may be many beside each other."""
    unknown = imported(3, 2_500.0, ""), imported(3, 2_500.0, "importlib._bootstrap._find_and_load")
    small = [imported(number, 1_500.0, f"module{number}") for number in range(3, 8)]
    for others in ([imported(3, 1_999.0, "pandas")], *([one] for one in unknown), small):
        assert isinstance(judged(IMPORTED, *others), Healthy)


def test_a_module_that_the_script_uses_is_necessary() -> None:
    """Or one that imports TensorFlow."""
    pandas = imported(3, 4_000.0, "pandas")
    used = line(Phase.PREPARING, 9, 300.0, "pandas.core.frame.DataFrame.merge", samples=1)
    found = (judged(IMPORTED, pandas), judged(IMPORTED, pandas, used), judged(imported(1, 9_000.0, "transformers")))
    assert kinds(*found) == [Finding, Healthy, Healthy]


def test_a_model_that_a_loop_loads_again() -> None:
    for count, looped, name, kind in (
        (40, True, "load_model", Finding),
        (10, True, "Checkpoint.restore", Finding),
        (9, True, "load_model", Healthy),  # an ensemble
        (40, False, "load_model", Healthy),
        (40, True, "clear_session", Healthy),
    ):
        call = made(RunCall.BUILD, 14, count, 800.0, name=name, looped=looped)
        assert isinstance(judged(IMPORTED, calls=(call,)), kind)


def test_weights_one_by_one_are_found_and_layers_are_not() -> None:
    setting = "keras.src.layers.layer.Layer.set_weights"
    verdict = as_finding(judged(IMPORTED, line(Phase.BUILDING, 30, 8_000.0, setting)))
    assert "one by one at train.py:30" in verdict.summary
    layers = line(Phase.BUILDING, 30, 8_000.0, "keras.src.layers.core.dense.Dense.__init__")
    assert isinstance(judged(IMPORTED, layers), Healthy)


def test_python_in_a_loop_while_building_is_found() -> None:
    loop, once = (judged(line(Phase.BUILDING, 30, 8_000.0, repeats=repeats)) for repeats in (True, False))
    assert kinds(loop, once) == [Finding, Healthy]


def test_a_part_of_the_run_is_not_judged() -> None:
    part = RunPhases(total_ms=1.0, times={}, whole=False, missing="only a window was traced")
    assert applied(slow_start, part, RunCalls(())) == NotApplicable(reason="only a window was traced")


# What other programs used of the cores while modules were imported, by the samples of that time alone.


BEGAN = 1_000_000_000
PHASES = divided_run(20_000.0, {Phase.START: 500.0, Phase.IMPORTS: 2_500.0})


def sample(seconds: float, run: float | None, others: float) -> dict[str, Any]:
    host = {"other_cpu_pct": others} | ({} if run is None else {"run_cpu_pct": run})
    return {"unix_ns": BEGAN + round(seconds * 1e9), "host": host}


def measured(*samples: dict[str, Any], cores: float = 2.0) -> StartLoad:
    kept = replace(recording(samples=samples), run=RunLog(RunProcess(started_unix_ns=BEGAN), {}, {}, ()))
    return StartLoad.measure(kept, PHASES, Hardware(DeviceKind.CPU, "x", cores=cores))


def test_the_load_is_that_of_the_start() -> None:
    load = measured(
        sample(0.0, 0.0, 0.0), sample(1.0, 10.0, 180.0), sample(3.0, 30.0, 160.0), sample(3.1, 0.0, 0.0)
    )
    assert [load.run, load.others, load.usable] == near([0.2, 1.7, 2.0])
    assert load.contended


def test_other_programs_delay_imports_where_no_core_is_free() -> None:
    assert measured(sample(1.0, 100.0, 51.0)).contended
    assert not measured(sample(1.0, 100.0, 50.0)).contended  # they use little
    assert not measured(sample(1.0, 90.0, 59.0)).contended  # half a core is free


def test_a_start_without_samples_is_unknown() -> None:
    for samples in ((), (sample(9.0, 1.0, 1.0),), (sample(1.0, None, 100.0),)):
        with pytest.raises(Unavailable, match="not sampled"):
            measured(*samples)


# A loop in Python that makes many training steps in one graph is told from one step of many layers.


STEP = TracedDefinition(
    name="run_epoch", at=Location("train.py", 44), tracings=1, ms=19_000.0, first_ms=19_000.0, made=1,
    defined=Location("train.py", 28),
)  # fmt: skip


def operations(steps: int, layers: int) -> list[dict[str, Any]]:
    """A graph that updates the weights of each layer once in each step, at line 37."""
    made = [graph_operation(f"w{layer}", "Placeholder", at=["train.py", 44]) for layer in range(layers)]
    for step in range(steps):
        for layer in range(layers):
            made.append(graph_operation(f"x{step}.{layer}", "MatMul", at=["train.py", 35]))
            more: dict[str, Any] = {"at": ["train.py", 37], "from": [layer]}
            made.append(graph_operation(f"u{step}.{layer}", "AssignSubVariableOp", **more))
    return [*made, graph_operation("sum", "AddV2", at=["train.py", 30])]


def unrolled(steps: int, layers: int = 3, *, function: TracedDefinition = STEP) -> Verdict:
    return example(program=program_of(*operations(steps, layers)), traces=RunTraces((function,)))


def test_a_graph_of_many_training_steps_starts_slowly() -> None:
    """It needs no traced step: the account of the run has the time. Each step updates the weights once."""
    for steps, ms in ((24, 20_000.0), (10, 20_000.0)):
        verdict = as_finding(unrolled(steps, function=replace(STEP, ms=ms, first_ms=ms)))
        (effect,) = verdict.run_effects
        assert (effect.phase, effect.of.value, effect.scales) == (Phase.TRACING, ms, 1 / steps)
        assert f"its graph has {steps} training steps, made at train.py:35" in verdict.summary
        assert "tf.range" in first_code(verdict)
    short = unrolled(24, function=replace(STEP, ms=2_000.0, first_ms=2_000.0))
    assert kinds(unrolled(9, function=replace(STEP, ms=20_000.0, first_ms=20_000.0)), short) == [Healthy, Healthy]


def test_many_layers_are_one_step() -> None:
    """Trap: a loop in Python makes 40 layers, so that each line makes 40 operations."""
    assert isinstance(unrolled(1, layers=40), Healthy)


def test_a_function_that_is_traced_again_has_one_step_in_each_graph() -> None:
    """Trap: the graphs have the same names, and each writes the same variables once."""
    graphs = [{"kind": "function", "operations": operations(1, 3)}] * 24
    program = chart(trace([]), recording({"graphs": graphs})).fact(Program)
    assert isinstance(example(program=program, traces=RunTraces((STEP,))), Healthy)


def test_a_function_without_operations_of_its_own_lines_is_unknown() -> None:
    """Trap: the training function of Keras is not defined in the script."""
    for defined in (None, Location("model.py", 28), Location("train.py", 90)):
        assert isinstance(unrolled(24, function=replace(STEP, defined=defined)), Healthy)
