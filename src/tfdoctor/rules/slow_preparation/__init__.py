from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.run_work.line_groups import line_groups
from tfdoctor.facts.run_work.run_tables import line_table
from tfdoctor.rules.slow_preparation.advice import CACHED
from tfdoctor.rules.slow_preparation.places import SlowPlace, adapt_table, slow_places

__doc__, CODE = page(__file__)

TOPIC = Topic.RUN
SINCE = "0.2.0"
PRECONDITIONS = (whole_run,)

BY_HAND = "which vectorized form computes the same depends on the data, not only on the file"

NOT_TOLD = "another framework than TensorFlow trains, and what of the script's own work prepares data is not known"

SHOWN = 3
"""Places with a remedy of their own: those that take most of the time."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When preparing is reported: both limits must be reached by a loop and what it calls."""

    share: float = share_limit(
        0.05, "Smallest share of the run in one loop that prepares data, as of other savings"
    )
    least_ms: float = limit(1000.0, "Shortest time in ms of such a loop; below a second nobody waits for it")


def check(phases: RunPhases, calls: RunCalls | None, limits: Limits = Limits()) -> Verdict:
    """Find the loops that prepare data item by item."""
    if phases.of(Phase.OWN):
        return NotApplicable(reason=NOT_TOLD)
    places = slow_places(phases, calls)
    least_ms = max(limits.least_ms, limits.share * phases.total_ms)
    slow = [place for place in places if place.ms >= least_ms]
    longest_ms = max((place.ms for place in places), default=0.0)
    measures = (
        Measure("time of preparing data", ms(phases.of(Phase.PREPARING))),
        Measure("longest time of a loop that prepares data", ms(longest_ms), ms(least_ms)),
    )
    if not slow:
        return Healthy(summary=_usual(phases), evidence=measures, concern=Concern.RUN)
    return Finding(
        summary=_summary(slow, phases),
        evidence=(*measures, *_tables(slow, phases, calls)),
        remedies=(*(place.remedy for place in slow[:SHOWN]), Remedy(CACHED.action, CACHED.code)),
        run_effects=tuple(place.effect for place in slow),
        concern=Concern.RUN,
    )


def _tables(slow: Sequence[SlowPlace], phases: RunPhases, calls: RunCalls | None) -> tuple[Table, ...]:
    """Return the sampled lines of loops, and the calls of adapt."""
    groups = [place.group for place in slow if place.group]
    timed = {place.at for place in slow if not place.group}
    adapted = [call for call in calls.of(RunCall.ADAPT) if call.at in timed] if calls else []
    return *line_table(groups, phases.total_ms), *adapt_table(adapted, phases.total_ms)


def _usual(phases: RunPhases) -> str:
    """State the time of preparing, and the line that takes most of it."""
    time_ms = phases.of(Phase.PREPARING)
    text = f"Preparing data takes {milliseconds(time_ms)} ({percent(phases.share(Phase.PREPARING))} of the run)"
    first = next((group for group in line_groups(phases.at(Phase.PREPARING)) if group.at), None)
    if first is None or first.ms * 2 < time_ms:
        return text
    work = f" in {first.calls}" if first.calls else ""
    return f"{text}, mostly{work} at {location(first.at)}, which is not seen to work item by item"


def _summary(slow: Sequence[SlowPlace], phases: RunPhases) -> str:
    first, *others = slow
    time = f"{milliseconds(first.ms)} ({percent(first.ms / phases.total_ms)} of the run)"
    text = f"{first.fault} at {location(first.at)}{first.within}: {time}"
    if not others:
        return text
    all_ms = sum(place.ms for place in slow)
    more = counted(len(others), "more such place")
    return f"{text}; with {more} {milliseconds(all_ms)}"
