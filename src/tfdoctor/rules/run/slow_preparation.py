from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (whole_run,)


NOT_TOLD = "another framework than TensorFlow trains, and what of the script's own work prepares data is not known"
PLACE = f"{{at}}{{within}}: {PART}"


Limits = CallLimits


# Of kinds of work that need not take so long: what to say, and the code; other work is necessary, or unknown.
ADVICE = {
    CalledWork.ROWS: ("Rows of a table are read one by one", "columns"),
    CalledWork.GROWING: ("An array or a table is copied each time that something is added to it", "one-join"),
    CalledWork.FILES: ("Files are read, decoded or converted one by one", "decode"),
    CalledWork.OPERATIONS: ("TensorFlow operations run one by one for single items", "all-operations"),
    CalledWork.MODEL: ("A loop calls a model or a layer from Python, operation by operation", "compiled"),
    CalledWork.TEXTS: ("Texts are processed one by one in Python", "texts"),
    CalledWork.PARSING: ("A text file is read value by value in Python", "read-table"),
    CalledWork.DOWNLOAD: ("Data are downloaded in each run", "keep-file"),
    CalledWork.PYTHON: ("A loop in Python prepares the data item by item", "arrays"),
}
INSTEAD = AT_ONCE | {
    CalledWork.PARSING: "Read it with pandas.read_csv, and keep the array in a file",
    CalledWork.DOWNLOAD: "Keep the downloaded data in a file",
    CalledWork.PYTHON: "Compute with whole arrays, or prepare once and keep the result in a file",
}

# For adapt on batches of few examples: each batch costs the same few operations.
IN_LARGE_BATCHES = Remedy("Adapt the layer to large batches, or to the array itself", CODE["large-batches"])
# What helps whatever the work is: it is the same in each run.
KEPT = Remedy("Prepare once, and keep the result in a file", CODE["kept"])


def check(phases: RunPhases, calls: RunCalls | None, limits: Limits = Limits()) -> Verdict:
    """Find the loops that prepare data item by item."""
    if phases.of(Phase.OWN):
        return NotApplicable(reason=NOT_TOLD)
    # Lines of the steps that run before the first one are the training itself.
    lines = phases.at(Phase.PREPARING, Phase.STEPS)
    own, of_steps = (summed((one.at, one.ms) for one in phases.at(of)) for of in (Phase.PREPARING, Phase.STEPS))
    groups = line_groups(one for one in lines if own.get(one.at, inf) >= of_steps.get(one.at, 0.0))
    advised = {Phase.PREPARING: frozenset(ADVICE), Phase.STEPS: IN_STEPS}
    places = [_loop(group) for group in groups if group.at and group.work in advised[group.phase]]
    for place in small_calls(calls, RunCall.ADAPT) if calls else ():
        rows, batches = rows_per_batch(place.call) or 0.0, (place.call and place.call.batches) or 0.0
        says = f"{{name}} reads {number(batches)} batches of {with_noun(rows, 'example')} at {PLACE}"
        once = replace(place, says=says, remedies=(IN_LARGE_BATCHES,), recurs=Recurrence.ONCE, times=1)
        places.append(once)
    places.sort(key=lambda place: -place.ms)
    least_ms = max(limits.least_ms, limits.share * phases.total_ms)
    slow = SlowPlaces.of(phases, places, least_ms, whole=True)
    longest = "longest time of a loop that prepares data"
    groups = tuple(group for group in groups if group.phase is Phase.PREPARING)
    measures = slow.measures("time of preparing data", longest, Phase.PREPARING)
    if not slow.places:
        time_ms, first = phases.of(Phase.PREPARING), next((group for group in groups if group.at), None)
        text = f"Preparing data takes {milliseconds(time_ms)} ({percent(phases.share(Phase.PREPARING))} of the run)"
        if first and first.ms * 2 >= time_ms:
            work = f" in {first.calls}" if first.calls else ""
            text += f", mostly{work} at {location(first.at)}"
            text += "" if first.work in ADVICE else ", which is not seen to work item by item"
        return Healthy(summary=text, evidence=measures, concern=Concern.RUN)
    timed = {place.at for place in slow.places if place.call}
    adapted = Table.of(
        [call for call in calls.of(RunCall.ADAPT) if call.at in timed] if calls else [],
        ("your line", lambda call: call.at),
        ("function", lambda call: call.name),
        ("calls", lambda call: count(call.count)),
        ("batches of a call", lambda call: count(call.batches or 0.0)),
        ("examples of a batch", lambda call: count(rows_per_batch(call) or 0.0)),
        ("time per batch", lambda call: ms(call.each_ms / max(1.0, call.batches or 0.0))),
        ("time", lambda call: ms(call.ms)),
        ("share of the run", lambda call: ratio(call.ms / phases.total_ms if phases.total_ms else 0.0)),
    )
    return slow.finding(
        measures,
        (
            *line_table([place.group for place in slow.places if place.group], phases.total_ms),
            *([adapted] if timed else ()),
        ),
        (*changes(slow.places[:SHOWN]), *((KEPT,) if slow.places[0].phase is Phase.PREPARING else ())),
        others=lambda others: counted(len(others), "more such place"),
    )


def _loop(group: LineGroup) -> RunPlace:
    """Return the lines of a loop as a place, with what to do about their work."""
    says, code = ADVICE[group.work]
    place = RunPlace(
        at=group.at, phase=group.phase, ms=group.ms, says=f"{says} at {PLACE}",
        remedies=(Remedy(INSTEAD[group.work], CODE[code]),), within=in_function(group), group=group,
    )  # fmt: skip
    return place if group.phase is Phase.PREPARING else replace(place, recurs=Recurrence.PER_STEP, times=0)
