"""The family of rules about places: milliseconds at lines of the run, of which a change leaves a share.

A rule says what the time at a place is spent on, what to change, and which share is left. Here stand what makes a
place slow, its sentence, its price and its evidence.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Self

from tfdoctor.facts.phases.run_calls import MadeCall, RunCalls, TracedDefinition
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.run_work.line_groups import CalledWork, LineGroup, line_groups
from tfdoctor.families.forms import cheaper_form
from tfdoctor.terms.humanize import location, milliseconds, number, percent
from tfdoctor.terms.kinds import Phase, RunCall
from tfdoctor.terms.record import Record
from tfdoctor.terms.units import count, ms, ratio
from tfdoctor.terms.verdict import *

PART = "{ms} ({share} of the run)"  # The time of a place in the sentence about it
# What to do instead of work on one item after another; slow-preparation has code for each.
AT_ONCE = {
    CalledWork.ROWS: "Compute with whole columns of the table",
    CalledWork.GROWING: "Collect the parts in a list, and join them once after the loop",
    CalledWork.FILES: "Read, decode and convert them in the input pipeline, in parallel and beside the training",
    CalledWork.OPERATIONS: "Run each operation once for all items, or in the input pipeline",
    CalledWork.MODEL: "Call the model in a tf.function, for many examples at once",
    CalledWork.TEXTS: "Tokenize batches of texts, in the input pipeline, or keep the tokens in a file",
    CalledWork.PYTHON: "Compute with whole arrays, no loop over items",
}
SHOWN_ROWS = 8  # Rows of each table: the lines that take most of the time
SHOWN = 3  # Places with remedies of their own: those that take or lose most


class RunPlace(Record, kw_only=True):
    """Time of the run at a line of the user's, of which the share ``left`` remains after the change.

    ``group`` are its sampled lines, ``call`` its timed calls, of whose time ``ms`` may be a part. ``says`` is a
    sentence with ``{at}{within}``, ``{ms}`` and ``{share}`` of the run, ``{each}`` of ``times``, and ``{name}``.
    """

    at: Location | None
    phase: Phase
    ms: float
    left: float = 0.0
    work: str = ""
    name: str = ""  # of what is called or imported: in the code of remedies NAME stands for it
    says: str = ""
    remedies: tuple[Remedy, ...] = ()
    within: str = ""  # " in load(), called at train.py:7"
    recurs: Recurrence = Recurrence.ONCE
    times: int = 1
    bound: Bound = Bound.AT_MOST
    priced: bool = True
    group: LineGroup | None = None
    call: MadeCall | None = None

    @property
    def saved_ms(self) -> float:
        """What the change saves of the run."""
        return self.ms * (1.0 - self.left)

    @property
    def effect(self) -> RunEffect:
        """What the change does to the time of its phase."""
        return RunEffect(
            phase=self.phase, of=ms(self.ms), subject=location(self.at), scales=self.left,
            recurs=self.recurs, times=self.times, bound=self.bound,
        )  # fmt: skip

    def summary(self, phases: RunPhases) -> str:
        """Return its sentence."""
        spent_ms = self.call.ms if self.call else self.ms
        return self.says.format(
            at=location(self.at), within=self.within, ms=milliseconds(spent_ms), name=self.name,
            share=percent(spent_ms / phases.total_ms), each=milliseconds(spent_ms / max(1, self.times)),
            times=number(self.times),
        )  # fmt: skip

    def changes(self) -> Iterable[Remedy]:
        """Return its remedies, at its line."""
        above = f"# {location(self.at)}{self.within}\n"
        form = cheaper_form(self.group.calls) if self.group else ""
        for one in (*self.remedies, *([Remedy(form)] if form else ())):
            code = above + one.code.replace("NAME", self.name) if one.code else ""
            yield replace(one, code=code, at=self.at)


def other_lines(others: Sequence[RunPlace]) -> str:
    """Return the lines of further places."""
    return ", ".join(location(place.at) for place in others)


class SlowPlaces(Record):
    """The places where a rule's limit is reached, in its order, and the longest time of any place."""

    phases: RunPhases
    least_ms: float
    longest_ms: float
    places: tuple[RunPlace, ...]

    @classmethod
    def of(cls, phases: RunPhases, found: Sequence[RunPlace], least_ms: float, *, whole: bool = False) -> Self:
        """Compare what the change of each place saves, or its ``whole`` time, with the least time."""
        times = [place.ms if whole else place.saved_ms for place in found]
        slow = (place for place, time_ms in zip(found, times, strict=True) if time_ms >= least_ms)
        return cls(phases, least_ms, max(times, default=0.0), tuple(slow))

    def measures(self, work: str, longest: str, *of: Phase) -> tuple[Measure, Measure]:
        """Return the time of phases, and the longest time beside the limit."""
        return Measure(work, ms(self.phases.of(*of))), Measure(longest, ms(self.longest_ms), ms(self.least_ms))

    def details(self, calls: Iterable[MadeCall], *of: Phase) -> tuple[Table, ...]:
        """Return the sampled lines of phases, and the calls, that are at these places."""
        at, total_ms = {place.at for place in self.places}, self.phases.total_ms
        groups = [group for group in line_groups(self.phases.at(*of)) if group.at in at]
        return (*line_table(groups, total_ms), *call_table([call for call in calls if call.at in at], total_ms))

    def finding(
        self,
        measures: Iterable[Measure],
        tables: Iterable[Evidence],
        remedies: Iterable[Remedy] | None = None,
        others: Callable[[Sequence[RunPlace]], str] | None = other_lines,
        severity: Severity | None = None,
        about: RunCall | None = None,
    ) -> Finding:
        """Return what is found: the first place in words, the others by ``others``, and the price of all."""
        summary = self.places[0].summary(self.phases)
        if others and self.places[1:]:
            all_ms = sum(place.ms for place in self.places)
            summary += f"; with {others(self.places[1:])} {milliseconds(all_ms)}"
        return Finding(
            summary=summary,
            evidence=(*measures, *tables),
            remedies=tuple(changes(self.places) if remedies is None else remedies),
            run_effects=tuple(place.effect for place in self.places if place.priced),
            severity=severity,
            concern=Concern.RUN,
            about=about,
        )


def none_seen(phases: RunPhases, calls: RunCalls, nothing: str) -> Verdict:
    """Return that a run "saved nothing": not checked where a loop of Python may do it in ways that are not seen."""
    if phases.until or not calls.fits:
        return NotApplicable(reason=f"the run {nothing}{phases.until}")
    return Healthy(summary=f"The run {nothing}", concern=Concern.RUN)


def changes(places: Iterable[RunPlace]) -> Iterable[Remedy]:
    """Return the remedies of places."""
    return (remedy for place in places for remedy in place.changes())


def tracing_again(
    traced: TracedDefinition, again_ms: float, times: int, recurs: Recurrence = Recurrence.PER_CALL,
    bound: Bound = Bound.AT_MOST,
) -> RunEffect:  # fmt: skip
    """Return the time of so many calls that need not trace a function."""
    return RunEffect(
        phase=Phase.TRACING, of=ms(again_ms), subject=f"{traced.name} {location(traced.at)}".strip(),
        recurs=recurs, times=max(1, times), bound=bound,
    )  # fmt: skip


def in_function(group: LineGroup) -> str:
    """Return " in load(), called at train.py:7": the function of a group's line, where it has one of its own."""
    called = f", called at {location(group.caller)}" if group.caller else ""
    return f" in {group.function}(){called}" if group.function else ""


def line_table(groups: Iterable[LineGroup], total_ms: float) -> tuple[Table, ...]:
    """Return the lines of groups that have enough samples, and those that lead to most of a group's time.

    Lines of less have no row, and a table without rows is left out.
    """
    groups = tuple(groups)
    leading = Table.of(
        (one for group in groups for one in group.leading),
        ("your line that leads there", lambda one: one[0]),
        ("time of what it leads to", lambda one: ms(one[1])),
        ("share of the run", lambda one: ratio(one[1] / total_ms if total_ms else 0.0)),
        most=SHOWN_ROWS,
    )
    table = Table.of(
        (line for group in groups for line in group.lines if line.sure and line.at is not None),
        ("your line", lambda line: line.at),
        ("called at", lambda line: line.caller or "-"),
        ("library function", lambda line: line.calls or "-"),
        ("time", lambda line: ms(line.ms)),
        ("share of the run", lambda line: ratio(line.ms / total_ms if total_ms else 0.0)),
        ("stack samples", lambda line: count(line.samples)),
        most=SHOWN_ROWS,
    )
    return tuple(one for one in (table, leading) if one.rows)


def call_table(calls: Sequence[MadeCall], total_ms: float) -> tuple[Table, ...]:
    """Return the number and the time of calls, by line; () where there are none."""
    table = Table.of(
        calls,
        ("your line", lambda call: call.at),
        ("function", lambda call: call.name or str(call.call)),
        ("calls", lambda call: count(call.count)),
        ("time per call", lambda call: ms(call.each_ms)),
        ("time", lambda call: ms(call.ms)),
        ("share of the run", lambda call: ratio(call.ms / total_ms if total_ms else 0.0)),
        ("examples per call", lambda call: None if call.examples is None else number(call.examples)),
        most=SHOWN_ROWS,
    )
    return (table,) if calls else ()
