"""repeated-call: lines whose calls in later steps have an earlier one's arguments, without what draws numbers."""

from tests.rules.kit import *
from tfdoctor.rules.run.repeated_call import check

READ = "pandas.read_csv"


def example(*lines: RunLine, total_ms: float = 60_000.0) -> Verdict:
    times = dict.fromkeys((line.phase for line in lines), 0.0)
    times |= {phase: sum(line.ms for line in lines if line.phase is phase) for phase in times}
    return check(divided_run(total_ms, times, *lines))


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
    told["nothing was compared"] = example()
