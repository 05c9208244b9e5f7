"""What changes save, by the model of the step and by that of the run, alone and together."""

from collections.abc import Mapping

from tfdoctor.diagnosis.step import Parts
from tfdoctor.terms.json_form import Count, Ms, Number, Share, Sometimes
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.units import Milliseconds
from tfdoctor.terms.verdict import Bound, Recurrence


class Saving(Record, kw_only=True):
    """The saving of a change, computed by the step model."""

    per_step: Milliseconds = field(name="ms_per_step")
    share: Share
    bound: Bound
    how: str
    after: tuple[str, ...] = ()  # rules to fix first; before that it saves little or nothing


class RunSaving(Record, kw_only=True):
    """What a change saves of the run, computed by the run model.

    ``share`` is of the whole run as recorded; ``rated`` of what recurs in a longer run, or, of time that comes
    once, of the run of as many epochs as are known: the severity follows it. ``each`` is the saving each time it
    ``recurs``.
    """

    total: Milliseconds = field(name="ms")
    share: Share
    rated: Number = field(name="rated_share")
    recurs: Recurrence
    each: Milliseconds = field(name="each_ms")
    times: Count
    bound: Bound
    how: str = ""
    # Share of a run of as many epochs as asked for.
    extrapolated: Number | None = field(default=None, name="extrapolated_share")


class RunTogether(Record, kw_only=True):
    """What all changes save of the run together."""

    total: Milliseconds = field(name="ms")
    share: Share
    rules: tuple[str, ...]
    bound: Bound
    # phase: ms with them
    after_ms: Mapping[str, Ms] = field(default_factory=dict, name="phases_after_ms")
    # Share of a run of as many epochs as asked for.
    extrapolated: Number | None = field(default=None, name="extrapolated_share")


class Takes(Record):
    """The time that a general finding names; what a change saves of it is unknown."""

    per_step: Milliseconds = field(name="ms_per_step")
    share: Share


class Together(Record, kw_only=True):
    """The saving of all changes combined."""

    per_step: Milliseconds = field(name="ms_per_step")
    share: Share
    rules: tuple[str, ...]
    after_ms: Parts = field(default_factory=dict)  # the parts of the step with them
    bound: Bound = Bound.EXPECTED  # AT_MOST when one of them is
    more_than_alone: Sometimes[bool] = False  # than the sum of the single savings
