"""The lines that the host's time of a step goes to, and what their functions do."""

from tests.facts.kit import *
from tests.facts.step_time.sampled import place as seen_at
from tests.facts.step_time.sampled import sampled, traced
from tfdoctor.facts.step_time.timed_line import by_caller, shown, slow_call, work_of
from tfdoctor.trace.events import LIMIT_PS
from tfdoctor.trace.xplane import measured

told = Told()

test_functions_are_known_by_package_and_name = Names(__file__, "names").test(slow_call)

# The lines that the host's time goes to: samples count where the trace shows nothing else at work.

FEW = 8
CALLS, RUNS = ("tensorflow.python.polymorphic_function.Function.__call__", "tensorflow.execute.quick_execute")
ENTERS: dict[str, Any] = {"calls": CALLS, "runs": RUNS, "inside": True}


def busy_step(n: int) -> list[Row]:
    """Ten ms: a call of 8 that computes from 2 to 4 and from 5 to 6."""
    at = 10.0 * n
    operations: list[Row] = [("model/dense/MatMul:MatMul", at + 2, at + 4), ("model/loss/Mul:Mul", at + 5, at + 6)]
    return [marker(n, at, at + 8), executor(at + 1.9, at + 6.1, n + 1), *operations]


def seen_each(number: int, *offsets_ms: float, **more: Any) -> dict[str, Any]:
    """A place that was seen in each step, so many ms after the step began."""
    return seen_at(number, *(10 * n + ms for n in range(FEW - 1) for ms in offsets_ms), **more)


def host_lines(*places: dict[str, Any], **python: Any) -> HostLines:
    return sampled((row for n in range(FEW) for row in busy_step(n)), *places, **python).fact(HostLines)


told[host_lines] = {
    "samples count where the device is idle": (seen_each(3, 1.0, 7.0), seen_each(4, 3.0, **ENTERS)),
    "a part is divided by samples": (seen_each(3, 1.0, 1.2, 7.0), seen_each(4, 7.5), seen_each(5, 9.0)),
    "a wait between two operations is not its own": (seen_each(3, 1.0, 4.5, **ENTERS), seen_each(3, 7.0)),
}


def test_a_part_is_divided_among_its_lines() -> None:
    lines = host_lines(seen_each(3, 1.0, 1.2, 7.0), seen_each(4, 7.5), seen_each(5, 9.0))
    assert [one.ms for one in lines.parts[Stage.HOST]] == pytest.approx([3.75, 1.25], rel=0.03)
    lines = host_lines(seen_each(3, 1.0, 4.5, **ENTERS), seen_each(3, 7.0))
    expected = [LineWork.DISPATCHING, LineWork.ENTERING, LineWork.PYTHON]
    assert sorted(one.work for one in lines.parts[Stage.HOST]) == expected


SAMPLED_MS = (20, 20, 20, 400, 20, 20, 20, 20, 20)
"""The calls after the measured steps: the fourth is at the end of an epoch, the fifth was none."""


def sampled_calls(*places: dict[str, Any]) -> Chart:
    """The measured steps, the calls after them, and what was sampled in all of these."""
    end = at = 10.0 * FEW
    rows = [row for n in range(FEW) for row in busy_step(n)] + [("tfdoctor_end", end, end)]
    for n, took in enumerate(SAMPLED_MS, FEW):
        stats = {"step_num": n, "steps": 1}
        rows += [
            ("tfdoctor_sampled", at, at + 16, stats),
            executor(at + 3, at + 8, n + 1),
            ("model/dense/MatMul:MatMul", at + 4, at + 7),
        ]
        at += took
    recorded = measured(traced(*rows, ("tfdoctor_end", at, at)))
    return sampled(recorded, *places, steps=StepsSeen(discarded=(FEW + 4,)))


def later(number: int, call: int, *offsets_ms: float) -> dict[str, Any]:
    """A place that was seen in one of those calls, so many ms after the call began."""
    began = 10 * FEW + sum(SAMPLED_MS[:call])
    return seen_at(number, *(began + ms for ms in offsets_ms))


def sampled_in(*places: dict[str, Any]) -> object:
    """Lines are found in all samples, times in the measured steps alone."""
    known = sampled_calls(seen_each(3, 1.0), *places)
    assert known.fact(Steps).count == FEW
    return known.fact(HostLines), known.fact(StackSamples)


told[sampled_in] = {
    "samples of calls that are not measured count too": (later(4, 0, 1.0, 9.0, 19.0), later(4, 7, 1.0)),
    "those of a long call at the end of an epoch do not": later(4, 3, 1.0, 9.0, 19.0),
    "nor those of one that had no batch": later(4, 4, 1.0, 9.0, 19.0),
    "nor those of the last one, after which the loop may have been left": later(4, 8, 1.0, 9.0, 19.0),
}


test_what_a_line_does_follows_from_the_functions_below_it = answers(
    lambda calls, runs, inside: work_of(SeenPlace(1, calls=calls, runs=runs, inside=inside)),
    ("numpy.histogram", "numpy.linspace", False, LineWork.PYTHON),
    ("", "", False, LineWork.PYTHON),
    ("tensorflow.ops._EagerTensorBase.numpy", "tensorflow.ops._numpy", False, LineWork.READING),
    ("tensorflow.convert_to_tensor", "tensorflow.x.convert", False, LineWork.CONVERTING),
    (CALLS, "tensorflow.constant_op.convert_to_eager_tensor", True, LineWork.CONVERTING),
    ("tensorflow._slice", "tensorflow.convert_to_eager_tensor", False, LineWork.OPERATIONS),
    (CALLS, RUNS, True, LineWork.ENTERING),
    (CALLS, "tensorflow.ops._EagerTensorBase.shape", True, LineWork.LOOPING),
    ("keras.src.trainer.Trainer.fit", RUNS, True, LineWork.ENTERING),
    ("keras.src.trainer.Trainer.fit", "tensorflow.optional_has_value", True, LineWork.LOOPING),
    ("keras.src.trainer.Trainer.call", "tensorflow.add", False, LineWork.OPERATIONS),
    (CALLS, RUNS, False, LineWork.OPERATIONS),
)


def test_within_a_compiled_function_s_call_the_innermost_function_is_shown() -> None:
    assert shown(SeenPlace(1, calls=CALLS, runs=RUNS, inside=True)) == RUNS
    assert shown(SeenPlace(1, calls="numpy.dot", runs="numpy.x", inside=True)) == "numpy.dot"


@told
def the_lines_of_a_function_are_merged_by_its_caller() -> object:
    caller = Location("train.py", 30)
    lines = [TimedLine(Location("train.py", n), 3, 1.5, calls={"": 3}, callers={caller: 3}) for n in (4, 5)]
    return by_caller([*lines, TimedLine(Location("train.py", 9), 8, 4.0)])


test_impossible_times_are_limited = answers(
    lambda began_ps, *when_us: times_of(SeenPlace(seen=1, when_us=when_us), began_ps).tolist(),
    (2_000_000, []),
    (2_000_000, 1, 2, [3_000_000, 4_000_000]),
    (2_000_000, 2**63, [LIMIT_PS]),
    (-(2**70), 1, [-LIMIT_PS]),  # of another year
)


def test_without_a_clock_they_have_no_time() -> None:
    assert sampling_began(PythonRecord(began_unix_ns=1), trace()) is None


# What Python does in and between the steps: tracing, single operations, compiling, and where it was seen.

SIX = 6


def python(*rows: Any, elsewhere: Any = (), beside: Recording | None = None) -> Chart:
    """The same rows in six steps of 10 ms, of which those without a name are the marks."""
    each = [(n, *row) for n in range(SIX) for row in rows]
    placed: list[Any] = [
        (name, 10.0 * n + start, 10.0 * n + end, *more) if name else marker(n, 10.0 * n + start, 10.0 * n + end)
        for n, name, start, end, *more in each
    ]
    return chart(trace(host=[line("python", *placed), line("tf_data_py_function", *elsewhere)]), beside)


@told
def tracing_is_building_and_preparing_inside_and_outside_of_the_call() -> object:
    """A call that builds its graph for 4 of 10 ms, prepares it for 2 and runs for 1; the marker is inside."""
    graphs = [{"name": "train_step", "given": ["x", str(n)], "operations": []} for n in range(3)]
    return python(
        ("train_step", 0, 8, {"tf_function_call": "traced-nonXla", "tracing_count": 9}),
        ("tf.function-graph_building", 0, 4),
        ("", 4.5, 8),
        ("EagerExecute", 5, 8),
        ("EagerKernelExecute", 7, 8),
        ("EagerLocalExecute: __inference_train_step_1", 7, 8),
        beside=recording({"graphs": graphs}),
    ).fact(Retracing)


told.add(
    "calls that do not trace",
    lambda: python(("step", 0, 5, {"tf_function_call": "notTraced"}), ("", 1, 5)).fact(Retracing),
)


@told
def single_operations_are_counted_on_the_threads_of_python() -> object:
    elsewhere = [("EagerLocalExecute: Mul", 10.0 * n, 10.0 * n + 1) for n in range(SIX)]
    beside = recording({"run": {"run_eagerly": True, "fit_at": ["/home/me/train.py", 7]}}, manifest=manifest())
    products = [("EagerLocalExecute: MatMul", 2 * k, 2 * k + 1) for k in range(4)]
    return python(("", 0, 9), *products, elsewhere=elsewhere, beside=beside).fact(EagerWork)


def compiling(name: str, ms: float, *starts: float) -> CompileTime:
    rows = [marker(n, 10.0 * n, 10.0 * n + 10) for n in range(SIX)]
    compiles = [(name, at, at + ms) for at in starts]
    return chart(trace(host=[line("python", *rows, *compiles)])).fact(CompileTime)


told[compiling] = {
    "the compilers time is the hosts": ("CpuCompiler::RunBackend", 4.0, 32.0, 42.0, 52.0),
    "XLAs too": ("XlaCompileBackend:#module=step#", 4.0, 32.0, 42.0, 52.0),
    "and on a GPU": ("GpuCompiler::RunHloPasses", 4.0, 32.0, 42.0, 52.0),
    "what few steps compile is told apart from the usual ones": ("XlaCompile", 8.0, 10.0, 50.0),
}


@told
def long_steps_of_the_run_take_as_long_as_a_compilation() -> object:
    rows = [marker(n, 10.0 * n, 10.0 * n + 10) for n in range(SIX)]
    compiles = ("XlaCompile", 12.0, 20.0)  # 8 ms
    long = tuple(LongStep(40 + n, 1.0 + n, took, 2.0) for n, took in enumerate((5.9, 6.0, 9.0)))
    long += (LongStep(50, 9.0, 9.0, 2.0, first=True),)  # the first of a pass
    log = RunLog(RunProcess(), {}, {}, (), long_steps=long)
    found = chart(trace(host=[line("python", *rows, compiles)]), replace(recording(), run=log)).fact(CompileTime)
    return found.long, found.long_ms


def seen(**python: Any) -> object:
    found = chart(trace(), recording({"python": python}, manifest=manifest())).fact(StackSamples)
    return {
        "samples": sum(place.seen for place in found.places),
        "makers": found.makers,
        "share": found.share(found.makers),
    }


MAKING = [
    {"at": ["/home/me/train.py", 3], "callback": None, "makes": True, "seen": 3},
    {"at": None, "callback": "Log.on_epoch_end", "makes": None, "seen": 1},
]
FED = {"at": ["/home/me/train.py", 4], "arguments": [{"shape": [8, 4], "anew": True}]}

told[lambda fed: seen(places=MAKING, fed=fed)] = {
    "the lines that make batches count where they make them anew": FED,
    "else they do not": None,
}


def test_the_source_says_which_lines_make_batches() -> None:
    lines = {4: 4, 9: 5, 7: 7, 8: None}  # of samples, and those of the loop that they are in
    places = [{"at": ["/home/me/train.py", at], "seen": 1, "looped": looped} for at, looped in lines.items()]
    python = {"places": places, "fed": {"at": ["/home/me/train.py", 6]}}
    made = LoopMakers(("/home/me/train.py", 6), ((3, 5), (6, 6)))
    run = RunLog(RunProcess(), {}, {}, (), makers=(made,))
    known = replace(recording({"python": python}, manifest=manifest()), run=run)
    found = chart(trace(), known).fact(StackSamples)
    assert [one.makes for one in found.places] == [True, True, False, None]


UNNAMED = line("python", *(marker(n, n, n + 1) for n in range(4)))

test_host_lines = told.test("host_lines")

test_what_is_not_known = unavailable(
    (lambda: host_lines(seen_each(3, 1.0), began_unix_ns=None), "no time in the trace"),
    (lambda: chart(trace(host=[UNNAMED])).fact(EagerWork), "does not show what Python ran"),
    (
        lambda: chart(trace(), recording({"graphs": []})).fact(StackSamples),
        "was not sampled",
    ),  # by an older version
)
