from tfdoctor.diagnosis.kit import *

__doc__, CODE = page(__file__)

TOPIC = Topic.RUN
SINCE = "0.2.0"
PRECONDITIONS = (whole_run,)

BY_HAND = "which vectorized form computes the same depends on the data, not only on the file"

NOT_TOLD = "another framework than TensorFlow trains, and what of the script's own work prepares data is not known"

SHOWN = 3  # Places with a remedy of their own: those that take most of the time

PLACE = f"{{at}}{{within}}: {PART}"


@dataclass(frozen=True, slots=True)
class Limits:
    share: float = share_limit(0.05)
    least_ms: float = limit(1000.0)


# Of each kind of work that need not take so long; what is not here is necessary, or not known well enough.
ADVICE = {
    CalledWork.ROWS: (
        "Rows of a table are read one by one",
        Remedy("Compute with whole columns of the table", CODE["columns"]),
    ),
    CalledWork.GROWING: (
        "An array or a table is copied each time that something is added to it",
        Remedy("Collect the parts in a list, and join them once after the loop", CODE["one-join"]),
    ),
    CalledWork.FILES: (
        "Files are read, decoded or converted one by one",
        Remedy(
            "Read, decode and convert them in the input pipeline, in parallel and beside the training",
            CODE["decode"],
        ),
    ),
    CalledWork.OPERATIONS: (
        "TensorFlow operations run one by one for single items",
        Remedy("Run each operation once for all items, or in the input pipeline", CODE["all-operations"]),
    ),
    CalledWork.TEXTS: (
        "Texts are processed one by one in Python",
        Remedy("Tokenize batches of texts, in the input pipeline, or keep the tokens in a file", CODE["texts"]),
    ),
    CalledWork.PARSING: (
        "A text file is read value by value in Python",
        Remedy("Read it with pandas.read_csv, and keep the array in a file", CODE["read-table"]),
    ),
    CalledWork.DOWNLOAD: (
        "Data are downloaded in each run",
        Remedy("Keep the downloaded data in a file", CODE["keep-file"]),
    ),
    CalledWork.PYTHON: (
        "A loop in Python prepares the data item by item",
        Remedy("Compute with whole arrays, or prepare once and keep the result in a file", CODE["arrays"]),
    ),
}

# For adapt on batches of few examples: each batch costs the same few operations.
IN_LARGE_BATCHES = Remedy("Adapt the layer to large batches, or to the array itself", CODE["large-batches"])
# What helps whatever the work is: it is the same in each run.
KEPT = Remedy("Prepare once, and keep the result in a file", CODE["kept"])


def check(phases: RunPhases, calls: RunCalls | None, limits: Limits = Limits()) -> Verdict:
    """Find the loops that prepare data item by item."""
    if phases.of(Phase.OWN):
        return NotApplicable(reason=NOT_TOLD)
    groups = line_groups(phases.at(Phase.PREPARING))
    places = [_loop(group) for group in groups if group.at and group.work in ADVICE]
    places += [_adapted(place) for place in small_calls(calls, RunCall.ADAPT)] if calls else []
    places.sort(key=lambda place: -place.ms)
    least_ms = max(limits.least_ms, limits.share * phases.total_ms)
    slow = SlowPlaces.of(phases, places, least_ms, lambda place: place.ms)
    longest = "longest time of a loop that prepares data"
    measures = slow.measures("time of preparing data", longest, Phase.PREPARING)
    if not slow.places:
        return Healthy(summary=_usual(phases, groups), evidence=measures, concern=Concern.RUN)
    timed = {place.at for place in slow.places if place.call}
    adapted = [call for call in calls.of(RunCall.ADAPT) if call.at in timed] if calls else []
    return slow.finding(
        measures,
        (
            *line_table([place.group for place in slow.places if place.group], phases.total_ms),
            *([_table(adapted, phases.total_ms)] if adapted else ()),
        ),
        (*changes(slow.places[:SHOWN]), KEPT),
        others=lambda others: counted(len(others), "more such place"),
    )


def _loop(group: LineGroup) -> RunPlace:
    says, remedy = ADVICE[group.work]
    return RunPlace(
        at=group.at, phase=Phase.PREPARING, ms=group.ms, says=f"{says} at {PLACE}", remedies=(remedy,),
        within=in_function(group), group=group,
    )  # fmt: skip


def _adapted(place: RunPlace) -> RunPlace:
    """Return the place of a call of adapt on small batches, whose time comes once."""
    rows, batches = number(rows_per_batch(place.call) or 0.0), number((place.call and place.call.batches) or 0.0)
    examples = "one example" if rows == "1" else f"{rows} examples"
    says = f"{{name}} reads {batches} batches of {examples} at {PLACE}"
    return replace(place, says=says, remedies=(IN_LARGE_BATCHES,), recurs=Recurrence.ONCE, times=1)


def _usual(phases: RunPhases, groups: Iterable[LineGroup]) -> str:
    time_ms, share = phases.of(Phase.PREPARING), percent(phases.share(Phase.PREPARING))
    text = f"Preparing data takes {milliseconds(time_ms)} ({share} of the run)"
    first = next((group for group in groups if group.at), None)
    if first is None or first.ms * 2 < time_ms:
        return text
    work = f" in {first.calls}" if first.calls else ""
    return f"{text}, mostly{work} at {location(first.at)}, which is not seen to work item by item"


def _table(calls: Iterable[MadeCall], total_ms: float) -> Table:
    return Table.of(
        calls,
        ("your line", lambda call: call.at),
        ("function", lambda call: call.name),
        ("calls", lambda call: count(call.count)),
        ("batches of a call", lambda call: count(call.batches or 0.0)),
        ("examples of a batch", lambda call: count(rows_per_batch(call) or 0.0)),
        ("time per batch", lambda call: ms(call.each_ms / max(1.0, call.batches or 0.0))),
        ("time", lambda call: ms(call.ms)),
        ("share of the run", lambda call: ratio(call.ms / total_ms if total_ms else 0.0)),
    )
