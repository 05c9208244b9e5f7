from tfdoctor.facts.run_work.constant_work import ConstantWork
from tfdoctor.facts.run_work.line_groups import called_work
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (whole_run,)

FEWEST = 3  # Calls seen with an earlier one's arguments: two may be of one value by chance
MOSTLY = 0.7  # Share of the calls seen from which all are alike; else few values come again and again
# Parts of functions' names whose results differ though their arguments do not.
CHANGING = frozenset({"random", "default_rng", "shuffle", "sleep", "input"})
MADE = (RunWork.BUILDING, RunWork.TRACING)
NOTHING = "no call was sampled whose arguments can be compared: numbers, texts, lists, arrays and tables"
MANY = 8  # Calls for each epoch from which on most of what they repeat is spared
PHASES = (Phase.EVALUATION, Phase.PREDICTION)  # In which no variable changes between two calls
ONCE = "Call {} once, before the loop, and keep its result"
APART = "Compute what needs no argument once, while the weights stay the same, and give it to the function"
EACH = "Keep the result of {} for each of its arguments"


Limits = CallLimits


def check(
    phases: RunPhases, calls: RunCalls | None, constant: ConstantWork | None, limits: Limits = Limits()
) -> Verdict:
    """Find calls with an earlier one's arguments, and functions that compute the same in each call."""
    # What draws numbers gives the function around it other results as well.
    drawing = {_function(line) for line in phases.lines if _draws(line)}
    lines = [line for line in phases.lines if not line.exact and not (_draws(line) or _function(line) in drawing)]
    # A figure, and what a model is built of, is made to be changed.
    known = [one for one in lines if one.given and called_work(one) is not CalledWork.PLOT and one.work not in MADE]
    found = [_place(line) for line in known if line.again >= FEWEST]
    found += [*_constant(phases, calls, constant)] if calls and constant else []
    places = sorted(found, key=lambda place: -place.saved_ms)
    least_ms = max(limits.least_ms, limits.share * phases.total_ms)
    slow = SlowPlaces.of(phases, places, least_ms)
    if not (known or places):
        return NotApplicable(reason=NOTHING)
    seen, again = sum(line.given for line in known), sum(line.again for line in known)
    measures = (
        Measure("calls whose arguments were compared", count(seen)),
        Measure("calls with the arguments of an earlier one", count(again)),
        Measure("longest time of a line that repeats calls", ms(slow.longest_ms), ms(least_ms)),
    )
    if slow.places:
        return slow.finding(measures, (*_table(slow.places, constant), *slow.details(())))
    text = f"{number(again)} of {number(seen)} calls whose arguments were compared had those of an earlier one"
    return Healthy(summary=text, evidence=measures, concern=Concern.RUN)


def _function(line: RunLine) -> tuple[str, str]:
    return line.at.path if line.at else "", line.function


def _draws(line: RunLine) -> bool:
    return not CHANGING.isdisjoint(line.calls.split("."))


def _place(line: RunLine) -> RunPlace:
    """Return a line as a place, with what remains if each argument is used once: of many, next to nothing."""
    alike = line.again >= MOSTLY * (line.given - 1)
    called = f"{line.calls} at {{at}}{{within}}" if line.calls else "{name}() at {at}{within}"
    arguments = "the arguments" if alike else "arguments"
    seen = f"{number(line.again)} of {number(line.given)} calls that samples show"
    name = (line.calls or line.function).removesuffix(".__init__").rpartition(".")[2]
    return RunPlace(
        at=line.at, phase=line.phase, ms=line.ms, left=1.0 / line.given if alike else 0.0,
        name=name,
        within=f", called at {location(line.caller)}" if line.caller else "",
        says=f"{called} gets {arguments} of an earlier call again, in {seen}: {PART}",
        remedies=(Remedy((ONCE if alike else EACH).format(name), CODE["once" if alike else "each"]),),
        recurs=Recurrence.PER_CALL, times=0, group=LineGroup((line,)),
    )  # fmt: skip


def _constant(phases: RunPhases, calls: RunCalls, constant: ConstantWork) -> Iterator[RunPlace]:
    """Yield the calls of functions outside of the steps whose products need few of their arguments."""
    for call in calls.of(RunCall.FUNCTION):
        part = constant.parts.get(call.name)
        phase = next((line.phase for line in phases.at(*PHASES) if line.exact and line.at == call.at), None)
        if part and phase and call.at and call.count >= MANY * max(1, calls.epochs):
            products = f"{len(part.lines)} of its {round(len(part.lines) / part.share)} products"
            yield RunPlace(
                at=call.at, phase=phase, ms=call.ms, left=1.0 - part.share, name=call.name,
                says=f"{{name}} at {{at}} computes {products} from no argument of the call, "
                f"{call.count:,} times: {PART}",
                remedies=(Remedy(APART, CODE["apart"]),), recurs=Recurrence.PER_CALL, times=call.count,
            )  # fmt: skip


def _table(places: Sequence[RunPlace], constant: ConstantWork | None) -> tuple[Table, ...]:
    """Return the operations that need no argument, by line."""
    parts = [part for place in places if not place.group and constant and (part := constant.parts.get(place.name))]
    rows = [line for part in parts for line in part.lines]
    table = Table.of(
        rows, ("your line", lambda line: line[0]), ("operation without an argument", lambda line: line[1]),
        most=SHOWN_ROWS,
    )  # fmt: skip
    return (table,) if rows else ()
