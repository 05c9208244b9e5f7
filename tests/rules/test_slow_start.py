"""slow-start: other imports and repeated loads are found, TensorFlow's import and one model are not."""

from tests.rules.kit import *
from tfdoctor.rules.run.slow_start import check
from tfdoctor.rules.run.slow_start.start_load import StartLoad

IMPORTED = run_line(Phase.IMPORTS, Location("serve.py", 1), 6_000.0, "tensorflow", repeats=False)
BUSY = StartLoad(Cores(usable=2.0, busy=0.1, others=1.9))


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
    return at_line(Phase.IMPORTS, number, ms, module, repeats=False)


def judged(*lines: RunLine, **more: Any) -> Verdict:
    return example(*more.pop("calls", ()), lines=lines, **more)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["the import of TensorFlow is necessary however short the run is"] = judged(IMPORTED, total_ms=8_000.0)
    told["a very slow import of TensorFlow is a note: 15 s, and less"] = judged(imported(2, 15_000.0, "keras"))
    told[...] = judged(imported(2, 14_999.0, "tensorflow"))
    slow, pandas = imported(3, 4_000.0, "transformers"), imported(3, 4_000.0, "pandas")
    told["another module is a note at its line"] = judged(IMPORTED, slow)
    used = at_line(Phase.PREPARING, 9, 300.0, "pandas.core.frame.DataFrame.merge", samples=1)
    told["a module that the script uses is necessary"] = judged(IMPORTED, pandas), judged(IMPORTED, pandas, used)
    told["a module that imports TensorFlow is necessary"] = judged(imported(1, 9_000.0, "transformers"))
    told["another module in less than 2 s"] = judged(IMPORTED, imported(3, 1_999.0, "pandas"))
    told["modules that are not known may be many beside each other"] = judged(IMPORTED, imported(3, 2_500.0, ""))
    told[...] = judged(IMPORTED, imported(3, 2_500.0, "importlib._bootstrap._find_and_load"))
    small = [imported(number, 1_500.0, f"module{number}") for number in range(3, 8)]
    told["several modules, each in less than 2 s"] = judged(IMPORTED, *small)
    told["imports beside other programs where no core is free are not judged"] = judged(IMPORTED, slow, load=BUSY)
    told["a core is free"] = [
        judged(IMPORTED, slow, load=StartLoad(Cores(*load))) for load in ((4, 1, 1.9), (2, 1, 0.5))
    ]
    told["the import of TensorFlow alone beside other programs"] = judged(IMPORTED, load=BUSY)
    loads = calls_at(RunCall.BUILD, 14, 40, 800.0, name="load_model", looped=True)
    told["loads in a loop count beside other programs"] = judged(slow, calls=(loads,), load=BUSY)
    told["ten loads in a loop"] = judged(IMPORTED, calls=(replace(loads, name="Checkpoint.restore", count=10),))
    told["nine loads are an ensemble"] = judged(IMPORTED, calls=(replace(loads, count=9),))
    told["loads without a loop"] = judged(IMPORTED, calls=(replace(loads, looped=False),))
    told["sessions that a loop clears"] = judged(IMPORTED, calls=(replace(loads, name="clear_session"),))
    weights = at_line(Phase.BUILDING, 30, 8_000.0, "keras.src.layers.layer.Layer.set_weights")
    told["weights are set one by one"] = judged(IMPORTED, weights)
    told["layers are made"] = judged(IMPORTED, replace(weights, calls="keras.src.layers.core.dense.Dense.__init__"))
    told["Python in a loop that builds, and without"] = judged(at_line(Phase.BUILDING, 30, 8_000.0, repeats=True))
    told[...] = judged(at_line(Phase.BUILDING, 30, 8_000.0, repeats=False))
    part = RunPhases(total_ms=1.0, times={}, whole=False, missing="only a window was traced")
    told["a part of the run is not judged"] = applied(check, part, RunCalls(()))


# What other programs used of the cores while modules were imported, by the samples of that time alone.
BEGAN = 1_000_000_000
PHASES = divided_run(20_000.0, {Phase.START: 500.0, Phase.IMPORTS: 2_500.0})


def sample(seconds: float, run: float | None, others: float) -> dict[str, Any]:
    host = {"other_cpu_pct": others} | ({} if run is None else {"run_cpu_pct": run})
    return {"unix_ns": BEGAN + round(seconds * 1e9), "host": host}


def measured(*samples: dict[str, Any], cores: float = 2.0) -> StartLoad:
    kept = replace(recording(samples=samples), run=RunLog(RunProcess(started_unix_ns=BEGAN), {}, {}, ()))
    return StartLoad.measure(kept, PHASES, Hardware(DeviceKind.CPU, "x", cores=cores))


@golden_cases
def test_load(told: Cases) -> None:
    def load(name: str, *samples: dict[str, Any]) -> None:
        def found() -> str:
            one = measured(*samples).cores
            return f"{one.busy:.4g} and {one.others:.4g} of others, of {one.usable:g}; contended: {one.contended}"

        told[name] = found

    before, after = sample(0.0, 0.0, 0.0), sample(3.1, 0.0, 0.0)
    load("the load is that of the start", before, sample(1.0, 10.0, 180.0), sample(3.0, 30.0, 160.0), after)
    load("no core is free", sample(1.0, 100.0, 51.0))
    load("others use little", sample(1.0, 100.0, 50.0))
    load("half a core is free", sample(1.0, 90.0, 59.0))
    load("no samples")
    load("samples of later", sample(9.0, 1.0, 1.0))
    load("samples without the run's own load", sample(1.0, None, 100.0))


# A loop in Python that makes many training steps in one graph is told from one step of many layers.
STEP = TracedDefinition(
    name="run_epoch", at=script(44), tracings=1, ms=19_000.0, first_ms=19_000.0, made=1, defined=script(28)
)


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


@golden_cases
def test_unrolled(told: Cases) -> None:
    """It needs no traced step: the account of the run has the time. Each step updates the weights once."""
    long = replace(STEP, ms=20_000.0, first_ms=20_000.0)
    told["a graph of 24 training steps starts slowly"] = unrolled(24, function=long)
    told["ten steps, and nine"] = unrolled(10, function=long), unrolled(9, function=long)
    told["24 steps that are traced in 2 s"] = unrolled(24, function=replace(STEP, ms=2_000.0, first_ms=2_000.0))
    told["trap: a loop in Python makes 40 layers, so that each line makes 40 operations"] = unrolled(1, layers=40)
    graphs = [{"kind": "function", "operations": operations(1, 3)}] * 24
    program = chart(trace([]), recording({"graphs": graphs})).fact(Program)
    told["trap: a function that is traced again"] = example(program=program, traces=RunTraces((STEP,)))
    told["trap: Keras' training function is not the script's"] = unrolled(24, function=replace(STEP, defined=None))
    told[...] = unrolled(24, function=replace(STEP, defined=Location("model.py", 28)))
    told[...] = unrolled(24, function=replace(STEP, defined=script(90)))
    gathers = [
        graph_operation(f"g{n}.{kind}", kind, at=["net.py", 46], layer="masking")
        for n in range(64)
        for kind in ("Const", "GatherV2")
    ]
    rest = [graph_operation(f"m{n}", "MatMul", at=["net.py", 70 + n], layer=f"dense_{n}") for n in range(256)]
    for name, layers, others in (
        ("a layer that takes each example by itself", [Layer("masking", "RandomMasking")], rest),
        ("trap: the optimizer is no layer", [], rest),
        ("less than a quarter of the graph", [Layer("masking", "RandomMasking")], 2 * rest),
    ):
        program = replace(program_of(*gathers, *others), layers=tuple(layers))
        told[name] = example(program=program, traces=RunTraces((long,)))
