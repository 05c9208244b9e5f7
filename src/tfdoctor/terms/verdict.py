"""The verdicts of rules: findings with evidence, remedies and effects, and the alternatives."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import IntEnum, StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Self, TypeVar

from msgspec import UNSET, Struct, UnsetType, defstruct

from tfdoctor.terms.json_form import Count, Number, Sometimes, form, one_of, row_form
from tfdoctor.terms.kinds import Phase, RunCall
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.units import Quantity, Unit, ms, ratio

Item = TypeVar("Item")


class Severity(IntEnum):
    """How much of the step a finding costs; follows the computed saving."""

    NOTE = 1
    WARNING = 2
    CRITICAL = 3

    @classmethod
    def of(cls, share: float) -> "Severity":
        """Return the severity of a share of the step, or of the traced time."""
        if share >= CRITICAL:
            return cls.CRITICAL
        return cls.WARNING if share >= WARNING else cls.NOTE

    @property
    def word(self) -> str:
        """What it is called."""
        return self.name.lower()


if TYPE_CHECKING:
    SeverityWord = Severity
else:
    _WORDS = [severity.word for severity in Severity]
    SeverityWord = form(
        Severity,
        read=lambda value: Severity(1 + _WORDS.index(value)),
        write=lambda severity: severity and severity.word,
        schema={"enum": _WORDS},
    )
CRITICAL, WARNING = 0.20, 0.05  # Shares of the step time that a finding must save to be critical, or a warning


class Stage(StrEnum):
    """A part of a training step, as the step model sees it."""

    INPUT = "input"
    TRANSFER = "transfer"
    HOST = "host"
    DEVICE = "device"
    COLLECTIVE = "collective"
    BETWEEN = "between"


class StepWork(StrEnum):
    """Parts of a stage's work that are no operation, layer or dataset: subjects of effects.

    Effects that name the same part are about the same milliseconds.
    """

    TRACING = "tracing"
    COMPILING = "compiling"
    BETWEEN_CALLS = "other work"
    MAKING_BATCHES = "batch"
    CONVERSION = "conversion"
    INTERPRETER = "interpreter"
    LAUNCHING = "launching"
    OPTIMIZER = "optimizer"
    READING_RESULTS = "reading"
    EXCHANGE = "the exchange"
    SLOWEST_REPLICA = "the slowest replica"
    STEP_ENTRY = "the way into a step"
    SCHEDULING = "starting operations"
    CHECKS = "starting checks"
    UNUSED_GRADIENTS = "unused gradients"


class Concern(StrEnum):
    """What a verdict is about."""

    TYPICAL_STEP = "typical step"  # the time of every step
    LONG_STEPS = "long steps"  # why a few steps take much longer than the others
    RUN = "run"  # time of the run outside of typical steps, or its memory
    MONEY = "money"  # what the run costs: no change to make


class Bound(StrEnum):
    """Whether a saving is what to expect, or a ceiling."""

    EXPECTED = "expected"
    AT_MOST = "at-most"


class Location(Record):
    """A line of the user's source."""

    path: str
    line: Count


class PlaceKind(StrEnum):
    """What a place is to the finding that is shown there."""

    LINE = "line"  # the finding's own line
    TRAINING_CALL = "training-call"  # the call or the loop that trains, where no line is known
    SCRIPT = "script"  # where the training call is unknown too; line 1 stands for the file
    TRACE = "trace"  # the recorded file, where no file of the program is known; likewise


class Place(Record):
    """Where a finding is shown; only a ``LINE`` is a line that the finding is about."""

    path: str
    line: Count
    kind: PlaceKind = PlaceKind.LINE


if TYPE_CHECKING:
    Cell = str | Quantity | Location
else:
    Cell = one_of((str, Quantity, Location), path=Location, line=Location, unit=Quantity)


class Measure(Record):
    """One number with its limit."""

    label: str
    value: Quantity
    limit: Quantity | None = None

    @classmethod
    def share(cls, label: str, value: float, limit: float | None = None) -> Self:
        """Return a share or another ratio, 1.0 for the whole, with its limit."""
        return cls(label, ratio(value), None if limit is None else ratio(limit))


class Table(Record):
    """Evidence with one row per item."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @classmethod
    def of(
        cls, items: Iterable[Item], *columns: tuple[str, Callable[[Item], Cell | None]], most: int | None = None
    ) -> Self:
        """Return a table of items, of the first ``most`` alone.

        A column is its heading, and what gives the cell of an item; None is shown as unknown.
        """
        cells = ([cell(item) for _, cell in columns] for item in islice(items, most))
        rows = (tuple("unknown" if cell is None else cell for cell in row) for row in cells)
        return cls(tuple(heading for heading, _ in columns), tuple(rows))


if TYPE_CHECKING:
    MeasureForm = Measure
    Evidence = Measure | Table
else:
    _Row = defstruct("Measure", [("label", str), ("value", Number), ("unit", Unit), ("limit", Number | None, None)])

    def _row(of: Measure) -> Struct:
        return _Row(of.label, of.value.value, of.value.unit, of.limit and of.limit.value)

    def _measure(row: Struct) -> Measure:
        limit = None if row.limit is None else Quantity(row.limit, row.unit)
        return Measure(row.label, Quantity(row.value, row.unit), limit)

    MeasureForm = row_form(Measure, _Row, _row, _measure)
    Evidence = one_of((Measure, Table), columns=Table, label=MeasureForm)


class LayerWidth(Record):
    """The width of a layer in the file, and the one to choose."""

    now: Count
    target: Count


class Replacement(Record):
    """New text in place of what lies between two places of a file; lines and columns from 1, in characters."""

    start: tuple[Count, Count]
    end: tuple[Count, Count]
    text: str


class Edit(Record):
    """A remedy as an edit of the user's own lines; "" before and after where it could not be made.

    ``missing`` is a clause that says why it is not in the patch; "" when it is.
    """

    at: Location | None  # the first line that changes
    before: str = ""  # the lines as they are, without the indent they share
    after: str = ""
    missing: Sometimes[str] = ""
    replacements: Sometimes[tuple[Replacement, ...]] = ()  # the same, exactly
    in_patch: Sometimes[bool | UnsetType] = UNSET  # of one that could be made


class Remedy(Record):
    """One change to make.

    ``code`` is Python for the user's own script, ``at`` the line it belongs to, ``edit_id`` the name
    of the change among the edits, ``width`` a number to change. ``changes`` is a clause that says how it changes
    what is trained, or what the run leaves behind; "" where it changes the time alone. Rules leave ``edit`` and
    ``by_hand`` out: one of them says what became of the change.
    """

    action: str
    code: str = ""
    at: Location | None = None
    edit_id: str = field(default="", name="trial")
    width: Sometimes[LayerWidth | None] = None
    changes: Sometimes[str] = ""
    edit: Edit | None = None
    by_hand: Sometimes[Edit | None] = None  # why there is none


class Effect(Record):
    """What a remedy does to a stage of the step; only the step model turns it into a saving.

    The stage's work on ``subject`` (a layer, a dataset; "" is the whole stage), which takes ``of``
    milliseconds per step now, takes ``scales`` times as long afterwards. ``overlaps`` says that the
    stage runs beside the rest of the step afterwards instead of before it, ``spreads`` that it takes
    less time because more threads share it: with either the cores have as much to do as before.
    ``narrows`` says that the subject's tensors shrink as its time does, so that memory limits it less.
    ``parts`` are the operations that a subject of several consists of. ``why`` is a clause with the measured
    numbers that the time of a whole stage changes by.
    """

    stage: Stage
    scales: Number = 1.0
    subject: Sometimes[str] = ""
    of: Sometimes[Quantity | None] = None
    overlaps: Sometimes[bool] = False
    bound: Sometimes[Bound] = Bound.EXPECTED
    spreads: Sometimes[bool] = False
    narrows: Sometimes[bool] = False
    parts: Sometimes[tuple[str, ...]] = ()
    why: Sometimes[str] = ""

    @classmethod
    def of_stages(
        cls, times_ms: Mapping[Stage, float], subject: str, scales: float = 0.0, bound: Bound = Bound.AT_MOST
    ) -> tuple[Self, ...]:
        """Return the effects on work that takes time of several stages, in ms per step."""
        times = {stage: ms(time_ms) for stage, time_ms in times_ms.items() if time_ms}
        return tuple(cls(stage, scales, subject, of, bound=bound) for stage, of in times.items())

    @property
    def names(self) -> bool:
        """Whether its time is what is wrong: a change that other work pays for names none of that work."""
        return self.scales < 1.0 or self.overlaps

    @property
    def is_ceiling(self) -> bool:
        """Whether it bounds what a whole stage costs, without saying which work in it is too much."""
        return not self.subject and self.bound is Bound.AT_MOST and self.scales == 0.0


class RunFailure(IntEnum):
    """Whether the run fails by what a finding is about: a run that dies delivers nothing, however fast it is."""

    NONE = 0
    AHEAD = 1  # within the planned run, or within an hour
    HAPPENED = 2


class Recurrence(StrEnum):
    """How often the time comes that a finding is about: a longer run has more of all but the first."""

    ONCE = "once"
    PER_EPOCH = "per epoch"
    PER_STEP = "per step"
    PER_CALL = "per call"


class RunEffect(Record, kw_only=True):
    """What a remedy does to a phase of the run; only the run model turns it into a saving.

    The time of ``subject`` (a line or a function, as text that is equal for equal ones; "" is the whole phase) in
    ``phase``, which is ``of`` ms in the recorded run, takes ``scales`` times as long afterwards. Effects on the
    same phase and subject are about the same time. ``times`` is how often it came in the recorded run; 0 is not
    counted.
    """

    phase: Phase
    of: Quantity
    subject: str = ""
    scales: Number = 0.0
    recurs: Recurrence = Recurrence.ONCE
    times: Count = 1
    bound: Bound = Bound.EXPECTED


class PartTime(Record):
    """Time of a part of the step (see Breakdown) that a verdict accounts for, in ms per training step.

    Of a Finding: the time that it names without an effect. Of a Healthy: time that is necessary work, and
    ``why``, as a sentence with the measured number that shows it; 0 ms where the sentence alone
    explains nothing.
    """

    part: str
    of: Quantity
    why: str = ""


class Finding(Record, kw_only=True):
    """A fault, with its proof and its remedy.

    ``severity`` is what the fault has besides its price, which raises it unless its time comes once; left out, it
    is that of the price, or a note without one. ``takes`` is the time that the summary of a general rule's
    finding states, in ms per step of the step model; left out, it follows from the effects. ``failure`` puts a
    finding before all that only save time. ``about`` is the kind of call at its line that is too much: findings of
    the step and of the run about the same calls are one entry of a report. ``alike`` is how many changes like the
    first remedy the effects count besides it, each at a place of its own.
    """

    summary: str
    evidence: tuple[Evidence, ...]
    remedies: tuple[Remedy, ...]
    effects: Sometimes[tuple[Effect, ...]] = ()
    severity: Sometimes[SeverityWord | None] = None
    concern: Sometimes[Concern] = Concern.TYPICAL_STEP
    names: Sometimes[tuple[PartTime, ...]] = ()
    takes: Sometimes[Quantity | None] = None
    run_effects: Sometimes[tuple[RunEffect, ...]] = ()
    failure: Sometimes[RunFailure] = RunFailure.NONE
    about: Sometimes[RunCall | None] = None
    alike: Sometimes[Count] = 0

    @property
    def lines(self) -> list[Location]:
        """The lines that it names: those of the remedies, then those that tables list."""
        rows = [row for item in self.evidence if isinstance(item, Table) for row in item.rows]
        listed = [value for row in rows for value in row if isinstance(value, Location)]
        return [remedy.at for remedy in self.remedies if remedy.at] + listed

    @property
    def at(self) -> Location | None:
        """The first line that it names."""
        return next(iter(self.lines), None)

    def edited(self, edits: Iterable[Edit | None]) -> Self:
        """Return the finding with these edits of its remedies, one of each."""
        made = []
        for remedy, edit in zip(self.remedies, edits, strict=True):
            lines = bool(edit and (edit.before or edit.after))
            done = replace(edit, in_patch=not edit.missing) if edit and lines else None
            made.append(replace(remedy, edit=done, by_hand=None if lines else edit))
        return replace(self, remedies=tuple(made))

    def joined(self, other: "Finding") -> "Finding":
        """Return one finding of two faults that a rule looks for: both sentences, with all that belongs to each."""
        both = {name: getattr(self, name) + getattr(other, name) for name in ("evidence", "remedies", "effects")}
        return replace(self, summary=f"{self.summary}. {other.summary}", **both)


class Healthy(Record, kw_only=True):
    """Checked without a finding, with the measured number."""

    summary: str
    evidence: tuple[Evidence, ...] = ()
    concern: Sometimes[Concern] = Concern.TYPICAL_STEP
    necessary: Sometimes[tuple[PartTime, ...]] = ()


class NotApplicable(Record, kw_only=True):
    """Not checked: what is missing, and how to get it."""

    reason: str


class Errored(Record, kw_only=True):
    """The rule failed: a defect of tfdoctor or of the user's own rule, not of the run."""

    error: str
    traceback: str


class Remark(Record, kw_only=True):
    """What makes figures of the recording less certain: no fault of the run, so no finding; the trust has it."""

    summary: str
    evidence: tuple[Evidence, ...] = ()
    remedies: tuple[Remedy, ...] = ()


Verdict = Finding | Healthy | NotApplicable  # The possible results of a rule
Outcome = Verdict | Remark | Errored  # What the engine records
