"""Data are prepared item by item before the training.

## What it checks

The time of the run in preparing data, before and between its calls of TensorFlow, by line: stack samples of the
whole run show the user's line, the library function that it calls, and whether a loop holds the line. Lines of a
loop, and the function that it calls for each item, count together. Reported are loops over rows of a table
(`iterrows`, `apply`), arrays that grow by `np.append` or `pd.concat` in a loop, files decoded one by one,
TensorFlow operations for single items, texts tokenized one by one, `np.loadtxt`, downloads, Keras' `adapt` on
batches of few examples, and other loops in Python.

One call that works on all data, such as `pd.read_csv`, `np.load`, random numbers or scikit-learn's
`fit_transform`, is necessary work, however long it takes, and is no finding.

## Why it matters

The accelerator waits until the data are ready, in each run again. NumPy and pandas compute with whole arrays 10 to
1,000 times faster than a loop over their items. `np.append` and `pd.concat` copy all that is there: with twice as
many items a loop takes four times as long.

## How to fix

- Rows of a table: arithmetic on whole columns; `map` with a dict; `np.where` for conditions.
- Arrays that grow: append to a list, and join once after the loop.
- Files and texts: read, decode and tokenize in `tf.data` with `num_parallel_calls=tf.data.AUTOTUNE`, beside the
  training.
- `adapt`: the array itself, or batches of thousands.
- Anything else: prepare once, and keep the result in a file (`np.save`, `dataset.save`).

## Holds for

Recordings of the whole run by `tfdoctor profile`. A line is named from 5 stack samples on, and its time is then
uncertain by 45 %. Functions of C have no frame: a line that calls only those counts as Python of its own. The
saving is an upper bound, for the vectorized form takes time as well.

## Sources

- [pandas: enhancing performance](https://pandas.pydata.org/docs/user_guide/enhancingperf.html)
- [pandas: iterrows, and what to do instead](https://pandas.pydata.org/docs/user_guide/basics.html#iteration)
- [numpy.append copies the array](https://numpy.org/doc/stable/reference/generated/numpy.append.html)
- [tf.data: build input pipelines](https://www.tensorflow.org/guide/data)
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import whole_run
from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.phases.run_calls import MadeCall, RunCalls
from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.facts.run_work.line_groups import line_groups
from tfdoctor.facts.run_work.run_tables import line_table
from tfdoctor.rules.slow_preparation.advice import CACHED
from tfdoctor.rules.slow_preparation.places import SlowPlace, adapt_table, slow_places
from tfdoctor.terms.humanize import counted, location, milliseconds, percent
from tfdoctor.terms.kinds import Phase, RunCall
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import (
    Concern,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Remedy,
    Table,
    Verdict,
)

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


def example(*lines: RunLine, total_ms: float = 131_000.0, calls: tuple[MadeCall, ...] = ()) -> Verdict:
    """Judge a run that prepares data at these lines and in these calls, and trains otherwise."""
    preparing = sum(line.ms for line in lines) + sum(call.ms for call in calls)
    phases = RunPhases.divided(total_ms, {Phase.PREPARING: preparing}, *lines)
    return check(phases, RunCalls(calls))


def sick() -> Verdict:
    """A table of 100,000 rows is read by iterrows: 21 of 131 s."""
    at, calls = Location("prepare.py", 33), "pandas.core.frame.DataFrame.iterrows"
    saved = RunLine.of(Phase.PREPARING, Location("prepare.py", 60), 400.0, "numpy.save", repeats=False)
    return example(RunLine.of(Phase.PREPARING, at, 21_000.0, calls, samples=420, function="load_table"), saved)


def healthy() -> Verdict:
    """The same table is read by read_csv in 2 s, and used as columns."""
    at = Location("prepare.py", 12)
    line = RunLine.of(Phase.PREPARING, at, 2_000.0, "pandas.read_csv", repeats=False)
    return example(line, total_ms=112_000.0)
