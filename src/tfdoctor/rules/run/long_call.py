from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (whole_run,)


class Limits(CallLimits):
    unknown: float = share_limit(0.1)


# What helps where no other form of a call is known, by when it is made: the work is not seen to be needless.
OTHERWISE = {
    Phase.PREPARING: Remedy("Keep its result in a file, if each run computes the same", CODE["kept"]),
    Phase.END: Remedy(
        "Run it on fewer examples, or in a script of its own with what this one saves", CODE["apart"]
    ),
}
WHEN = {Phase.PREPARING: "before the training", Phase.END: "after the training"}
# Work that is not seen to be done item by item; a dataset is passed through, as to count its examples.
SINGLE = frozenset({CalledWork.BULK, CalledWork.UNKNOWN, CalledWork.DATASET})


def check(phases: RunPhases, limits: Limits = Limits()) -> Verdict:
    """Find what takes long before and after the training, in one call for all data."""
    if phases.of(Phase.OWN):
        return NotApplicable(reason="another framework than TensorFlow trains: what the run computes is not told")
    groups = line_groups(line for line in phases.at(*WHEN) if not line.exact)
    places = [_place(group) for group in groups if group.at and group.work in SINGLE]
    known = [place for place in places if place.priced]
    slow = SlowPlaces.of(phases, known, max(limits.least_ms, limits.share * phases.total_ms))
    if not slow.places:
        least_ms = max(limits.least_ms, limits.unknown * phases.total_ms)
        slow = SlowPlaces.of(phases, places, least_ms, whole=True)
    measures = slow.measures("time before and after the training", "longest time of one line", *WHEN)
    if not slow.places:
        spent, share = milliseconds(phases.of(*WHEN)), percent(phases.share(*WHEN))
        text = f"No single call takes long before or after the training, which are {spent} ({share} of the run)"
        return Healthy(summary=text, evidence=measures, concern=Concern.RUN)
    severity = None if slow.places[0].priced else Severity.NOTE
    return slow.finding(measures, slow.details((), *WHEN), severity=severity)


def _place(group: LineGroup) -> RunPlace:
    """Return the lines of a call as a place; it has a price where another form is cheaper for certain."""
    form, calls = cheaper_form(group.calls), f"{group.calls} " if group.calls else ""
    return RunPlace(
        at=group.at, phase=group.phase, ms=group.ms, group=group, within=in_function(group), name=calls,
        says=f"{{name}}at {{at}}{{within}} takes {PART}, {WHEN[group.phase]}",
        remedies=() if form else (OTHERWISE[group.phase],), priced=bool(cheaper_form(group.calls, SAME)),
    )  # fmt: skip
