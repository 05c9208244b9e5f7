"""The largest places of a run, or of a step, that no finding explains and the hardware does not bound."""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from math import inf

from tfdoctor.diagnose.summary.profile import kept_of
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.work import LargePlace, ProfileRow
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.kit import by_key, summed
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.phases.run_pieces import lines_that_train
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.run_work.line_groups import LineGroup, line_groups
from tfdoctor.facts.savings.layer_work import LayerCalls
from tfdoctor.facts.savings.operation_groups import OperationGroups
from tfdoctor.families.forms import cheaper_form
from tfdoctor.recording import Recording
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.record import common
from tfdoctor.terms.verdict import Location, Severity, Stage

Lines = Container[Location | None]

SHOWN = 3  # Places: a reader looks at few, and those below the third rarely take a tenth
LEAST = 0.1  # Share of the run, or of the step, from which a place is named: as of what a verdict speaks of
SEVERAL = 3  # Calls of one layer in a step from which a loop makes them: networks that share weights have two
NEARLY = 0.8  # Share of the work of such layers that one line leads to
MOST = 0.5  # Share of a place's time from which findings explain it, or the hardware's rates do

# Phases that are no work of the script's, or whose lines only begin or end it.
NO_PLACES = {Phase.START, Phase.IMPORTS, Phase.PROFILER, Phase.UNNAMED}
# Phases that a longer run has more of.
RECURRING = {Phase.STEPS, Phase.BOUNDARIES, Phase.EVALUATION, Phase.PREDICTION, Phase.SAVING}


def large_places(chart: Chart, step: Sequence[ProfileRow], results: Sequence[Result]) -> tuple[LargePlace, ...]:
    """Return the places of a tenth of the run, or of what recurs in a longer one; of the step without a run.

    ``step`` is all that takes time in a typical step, which counts in all steps of the run. The largest is the
    first. Lines of one loop are one place. Places are left out that a finding of a warning or more names, for which
    findings save half of the time, or whose operations run at half of the hardware's rate or of this run's highest;
    and those of a phase of which a change leaves less than half of the place.
    """
    phases, step_ms = chart.get(RunPhases), next((row.ms / row.share for row in step if row.share), 0.0)
    whole = phases if phases is not None and phases.whole and phases.total_ms > 0 else None
    total_ms, steps_ms = (whole.total_ms, whole.of(Phase.STEPS)) if whole else (step_ms, step_ms)
    # The profile resolves what runs in these calls.
    recording = chart.fact(Recording)
    trains = {*map(Places.of(recording), lines_that_train(recording)), *(row.at for row in step if row.within)}
    found = {at: replace(one, ms=one.ms * steps_ms / step_ms) for at, one in _of_step(chart, step, trains).items()}
    own_lines = dict[Location, set[Location]]()
    groups, recurring_ms = _groups(whole, trains) if whole else (), whole.recurring_ms if whole else 0.0
    outer = _outer(groups, trains, LEAST * (recurring_ms or total_ms))
    for at, group in (*((group.at, group) for group in groups), *outer):
        if at and group.ms > (found[at].ms if at in found else 0.0):
            found[at] = LargePlace(at=at, what=group.calls, phase=group.phase, ms=group.ms)
            own_lines[at] = {at, *(line.at for line in group.lines if line.at)}
    explained, saved = _explained(results), _saved(results, steps_ms)
    taken = whole.of if whole else lambda _: steps_ms
    large = [
        place
        for place in (_shared(one, whole, total_ms) for one in found.values() if total_ms)
        if _rated(place) >= LEAST
        and sum(explained[line, place.phase in RECURRING] for line in own_lines.get(place.at, {place.at}))
        < MOST * place.ms
        and max(place.attained or 0.0, place.of_fastest or 0.0) < MOST
        and (place.phase not in saved or taken(place.phase) - saved[place.phase] > (1.0 - MOST) * place.ms)
    ]
    return tuple(sorted(large, key=_rated, reverse=True)[:SHOWN])


def _of_step(chart: Chart, step: Sequence[ProfileRow], trains: Lines) -> dict[Location, LargePlace]:
    """Return the places of a step, with their times in it; what works beside the step costs it nothing."""
    found, within = _repeated(chart, trains)
    rows = ((row.at, row) for row in step if row.at and not (row.beside or row.within))
    for at, own in by_key(rows).items():
        left_ms = sum(row.ms for row in own) - within.get(at, 0.0)
        if at not in found and left_ms > 0:
            found[at] = common(  # with what takes most of it
                LargePlace, own[0], ms=left_ms, phase=Phase.STEPS,
                attained=_mean(own, lambda row: row.attained), of_fastest=_mean(own, lambda row: row.of_fastest),
            )  # fmt: skip
    return found


def _rated(place: LargePlace) -> float:
    """Return its share of the run, or of what recurs in it, as the severity of findings follows them."""
    return max(place.share, place.recurring or 0.0)


def _repeated(chart: Chart, trains: Lines) -> tuple[dict[Location, LargePlace], dict[Location, float]]:
    """Return the innermost line below which a step calls the same layers again and again, and their ms by line."""
    layers, groups = chart.get(LayerCalls), chart.get(OperationGroups)
    calls = {name: made for name, made in layers.layers.items() if len(made) >= SEVERAL} if layers else {}
    rows = [row for group in groups.groups for row in group.rows if row.layer in calls] if groups else []
    kept = kept_of(chart)(Stage.DEVICE)
    leading = [(line, row) for row in rows for line in takewhile(lambda at: at not in trains, row.around)]
    by_line = summed((line, kept * row.ms) for line, row in leading)
    most = [at for at, time in by_line.items() if time >= NEARLY * max(by_line.values())]
    if not most:
        return {}, {}
    at = min(most, key=lambda line: by_line[line])
    below = [row for line, row in leading if line == at]
    longest, names = next(iter(summed((row.layer, row.ms) for row in below))), {row.built for row in below}
    times = sum(not names.isdisjoint(call) for call in calls[longest])  # those that the line leads to
    place = LargePlace(at=at, what="", phase=Phase.STEPS, part=Stage.DEVICE, ms=by_line[at], times=times)
    return {at: place}, summed((row.at, kept * row.ms) for row in below if row.at)


def _shared(place: LargePlace, run: RunPhases | None, total_ms: float) -> LargePlace:
    """Return a place with its share of the run, and of what recurs in a longer one where that is larger."""
    share, recurring = place.ms / total_ms, None
    if run and place.phase in RECURRING and 0 < run.recurring_ms < total_ms:
        recurring = min(1.0, place.ms / run.recurring_ms)
    return replace(place, share=share, recurring=recurring, of_run=bool(run), form=cheaper_form(place.what))


def _mean(rows: Sequence[ProfileRow], of: Callable[[ProfileRow], float | None]) -> float | None:
    """Return the mean by time of a figure that rows have; None where it is unknown for half of their time."""
    known = [(row.share, figure) for row in rows if (figure := of(row)) is not None]
    time = sum(share for share, _ in known)
    enough = time > MOST * sum(row.share for row in rows)
    return sum(share * figure for share, figure in known) / time if enough else None


def _groups(phases: RunPhases, trains: Lines) -> Sequence[LineGroup]:
    lines = (line for line in phases.lines if line.at and line.phase not in NO_PLACES)
    return line_groups(line for line in lines if line.phase is not Phase.STEPS or line.at not in trains)


def _outer(groups: Sequence[LineGroup], trains: Lines, least_ms: float) -> Iterator[tuple[Location, LineGroup]]:
    """Yield the innermost lines below which lines take so many ms that are no place of that size themselves.

    A line below which such a one was found counts without what that has.
    """
    left = [line for group in groups if group.ms < least_ms for line in group.lines]
    below = by_key((at, line) for line in left for at in takewhile(lambda at: at not in trains, line.around))
    depth = {at: min(line.around.index(at) for line in lines) for at, lines in below.items()}
    taken = set[int]()
    for at in sorted(below, key=lambda at: (depth[at], sum(line.ms for line in below[at]))):
        lines = [line for line in below[at] if id(line) not in taken]
        if sum(line.ms for line in lines) >= least_ms:
            taken.update(map(id, lines))
            yield at, LineGroup(tuple(sorted(lines, key=lambda line: -line.ms)))


def _explained(results: Iterable[Result]) -> Mapping[tuple[Location, bool], float]:
    """Return what findings save at each line that they name, in ms: all of it for a warning, or where unknown.

    What a rule itself makes a note of explains nothing, as it knows no sure change. Each line has it twice: of
    phases that recur, and of the others, of which a note about steps knows nothing.
    """
    explained: dict[tuple[Location, bool], float] = defaultdict(float)
    for result in results:
        finding, note = result.finding, result.severity is Severity.NOTE
        if finding and finding.severity is Severity.NOTE:
            continue
        saved = (result.run.ms if result.run else 0.0) if note and (result.run or result.saving) else inf
        for line in dict.fromkeys(finding.lines if finding else ()):
            explained[line, True] += saved
            explained[line, False] += 0.0 if note and finding and finding.effects and not result.run else saved
    return explained


def _saved(results: Iterable[Result], steps_ms: float) -> Mapping[Phase, float]:
    """Return the most that a finding of a warning or more saves of each phase, in ms."""
    saved: dict[Phase, float] = {}
    for result in results:
        if result.severity is Severity.NOTE or not result.finding:
            continue
        own = [(one.phase, (1.0 - one.scales) * one.of.value) for one in result.finding.run_effects]
        own += [(Phase.STEPS, steps_ms * result.saving.share)] if result.saving else []
        saved |= {phase: max(ms, saved.get(phase, 0.0)) for phase, ms in summed(own).items()}
    return saved
