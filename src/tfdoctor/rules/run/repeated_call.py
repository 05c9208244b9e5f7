from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (whole_run,)

FEWEST = 3  # Calls seen with an earlier one's arguments: two may be of one value by chance
MOSTLY = 0.7  # Share of the calls seen from which all are alike; else few values come again and again
# Parts of functions' names whose results differ though their arguments do not.
CHANGING = frozenset({"random", "default_rng", "shuffle", "sleep", "input"})
NOTHING = "no call was sampled whose arguments can be compared: numbers, texts, lists, arrays and tables"
ONCE = "Call it once, before the loop, and keep its result"
EACH = "Keep the result for each of its arguments"


Limits = CallLimits


def check(phases: RunPhases, limits: Limits = Limits()) -> Verdict:
    """Find lines that call a function again with arguments that it had in earlier steps."""
    # What draws numbers gives the function around it other results as well.
    drawing = {_function(line) for line in phases.lines if _draws(line)}
    lines = [line for line in phases.lines if not line.exact and not (_draws(line) or _function(line) in drawing)]
    known = [line for line in lines if line.given]
    places = sorted((_place(line) for line in known if line.again >= FEWEST), key=lambda place: -place.ms)
    least_ms = max(limits.least_ms, limits.share * phases.total_ms)
    slow = SlowPlaces.of(phases, places, least_ms)
    if not known:
        return NotApplicable(reason=NOTHING)
    seen, again = sum(line.given for line in known), sum(line.again for line in known)
    measures = (
        Measure("calls of different steps whose arguments were compared", count(seen)),
        Measure("calls with the arguments of an earlier one", count(again)),
        Measure("longest time of a line that repeats calls", ms(slow.longest_ms), ms(least_ms)),
    )
    if slow.places:
        return slow.finding(measures, slow.details(()))
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
    function = line.function.rpartition(".")[2]
    return RunPlace(
        at=line.at, phase=line.phase, ms=line.ms, left=1.0 / line.given if alike else 0.0,
        name=line.calls.rpartition(".")[2] or function,
        within=f", called at {location(line.caller)}" if line.caller else "",
        says=f"{called} gets {arguments} of an earlier call again, in {seen}: {PART}",
        remedies=(Remedy(ONCE if alike else EACH, CODE["once" if alike else "each"]),),
        recurs=Recurrence.PER_CALL, times=0, group=LineGroup((line,)),
    )  # fmt: skip
