"""repeated-call: lines whose calls in later steps have an earlier one's arguments, without what draws numbers."""

from tests.rules.kit import *
from tfdoctor.facts.run_work.constant_work import ConstantPart, ConstantWork
from tfdoctor.rules.run.repeated_call import check

READ = "pandas.read_csv"


def example(*lines: RunLine, total_ms: float = 60_000.0, calls: tuple[MadeCall, ...] = ()) -> Verdict:
    times = dict.fromkeys((line.phase for line in lines), 0.0)
    times |= {phase: sum(line.ms for line in lines if line.phase is phase) for phase in times}
    constant = ConstantWork({"ratings": ConstantPart(0.75, 3 * ((script(18), "MatMul"),))})
    return check(divided_run(total_ms, times, *lines), RunCalls(calls, epochs=3) if calls else None, constant)


def called(given: int, again: int, calls: str = READ, ms: float = 9_000.0, line: int = 29, **more: Any) -> RunLine:
    seen: dict[str, Any] = {"given": given, "again": again, "samples": 50, "caller": script(40)}
    return run_line(Phase.BOUNDARIES, script(line), ms, calls, **(seen | more))


sick = described("The same file is read in each of 12 epochs: 9 of 60 s.", example, called(9, 8))
healthy = described("Another file is read in each epoch.", example, called(9, 0))


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a few files come again and again"] = example(called(17, 4, "PIL.Image.open"))
    told["a function of the program, and another line"] = example(
        called(8, 6, "", function="vocabulary"), called(6, 5, ms=4_000.0, line=31, caller=None)
    )
    told["two calls alike may be chance"] = example(called(3, 2))
    told["less than 5 % of the run"] = example(called(9, 8, ms=2_900.0))
    told["random numbers, and the function that draws them"] = example(
        called(9, 8, "numpy.random.normal", function="noise"), called(9, 8, "", line=30, function="noise")
    )
    told["calls that are timed one by one"] = example(called(9, 8, "keras.Model.save", exact=True))
    told["a figure that is drawn on"] = example(called(9, 8, "matplotlib.pyplot.subplots"))
    told["nothing was compared"] = example()
    for number, name, phase in (
        (24, "ratings", Phase.EVALUATION), (23, "ratings", Phase.EVALUATION), (24, "ratings", Phase.STEPS),
        (24, "scores", Phase.EVALUATION),
    ):  # fmt: skip
        line = run_line(phase, script(50), 9_000.0, name, exact=True)
        call = made_call(RunCall.FUNCTION, script(50), number, 9_000.0 / number, name=name)
        told[f"{number} {name} in three epochs, in {phase}"] = example(line, calls=(call,))


def graph(*operations: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "ratings", "kind": "function", "operations": list(operations), **more}


def operation(kind: str, *sources: int, at: int = 9, dtype: str = "float32") -> dict[str, Any]:
    made = graph_operation(f"{kind}_{at}", kind, [], [[dtype, [9, 9]]])
    return {**made, "at": ["/job/t.py", at], "from": list(sources)}


ARGUMENT, VARIABLE = operation("Placeholder"), operation("Placeholder", at=1, dtype="resource")
VALUE = operation("ReadVariableOp", 1)
APART, SCORES = operation("MatMul", 2, 2, at=18), operation("MatMul", 0, 3, at=20)


@golden_cases
def test_constant_work(told: Cases) -> None:
    def computes(name: str, *graphs: dict[str, Any]) -> None:
        told[name] = lambda: (
            [
                f"{name}: {part.share:.2f}, {', '.join(f'{kind} at line {at.line}' for at, kind in part.lines)}"
                for name, part in ConstantWork.measure(recording({"graphs": list(graphs)})).parts.items()
            ]
            or ["nothing"]
        )

    whole, needed = (ARGUMENT, VARIABLE, VALUE, APART, SCORES), SCORES | {"from": [0, 2]}
    captured = graph(ARGUMENT, VARIABLE, VALUE, SCORES | {"from": [0, 0]}, captured=["Placeholder_9"])
    drawn, opaque = operation("RandomStandardNormal", at=4), operation("StatefulPartitionedCall", 1, at=4)
    computes("one of two products needs no argument", graph(*whole))
    computes("a captured tensor is no argument", captured)
    computes("all products need it", graph(ARGUMENT, VARIABLE, VALUE, APART | {"from": [0, 2]}, SCORES))
    computes("random numbers differ in each call", graph(ARGUMENT, VARIABLE, drawn, APART, SCORES))
    computes("what another function gives is not known", graph(ARGUMENT, VARIABLE, opaque, APART, SCORES))
    computes("a function that updates a variable", graph(*whole, operation("AssignAddVariableOp", 1, 3, at=21)))
    computes("another graph of it needs the argument", graph(*whole), graph(ARGUMENT, VARIABLE, VALUE, needed))
    computes("a function within another", graph(*whole, outer="step"))
