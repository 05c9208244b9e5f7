"""What changes save, by the model of the step and by that of the run, alone and together."""

from collections.abc import Mapping
from typing import Annotated

from tfdoctor.diagnosis.step import Parts
from tfdoctor.terms.json_form import Milliseconds, Ms, Named, OmitDefault, Share
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.verdict import Bound, Recurrence


class Saving(Record, kw_only=True):
    """The saving of a change, computed by the step model."""

    per_step: Annotated[Milliseconds, Named("ms_per_step")]
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

    total: Annotated[Milliseconds, Named("ms")]
    share: Share
    rated: Annotated[float, Named("rated_share")]
    recurs: Recurrence
    each: Annotated[Milliseconds, Named("each_ms")]
    times: int
    bound: Bound
    how: str = ""
    extrapolated: Annotated[float | None, Named("extrapolated_share")] = (
        None  # share of a run of as many epochs as asked for
    )


class RunTogether(Record, kw_only=True):
    """What all changes save of the run together."""

    total: Annotated[Milliseconds, Named("ms")]
    share: Share
    rules: tuple[str, ...]
    bound: Bound
    after_ms: Annotated[Mapping[str, Ms], Named("phases_after_ms")] = field(
        default_factory=dict
    )  # phase: ms with them
    extrapolated: Annotated[float | None, Named("extrapolated_share")] = (
        None  # share of a run of as many epochs as asked for
    )


class Takes(Record):
    """The time that a general finding names; what a change saves of it is unknown."""

    per_step: Annotated[Milliseconds, Named("ms_per_step")]
    share: Share


class Together(Record, kw_only=True):
    """The saving of all changes combined."""

    per_step: Annotated[Milliseconds, Named("ms_per_step")]
    share: Share
    rules: tuple[str, ...]
    after_ms: Parts = field(default_factory=dict)  # the parts of the step with them
    bound: Bound = Bound.EXPECTED  # AT_MOST when one of them is
    more_than_alone: Annotated[bool, OmitDefault()] = False  # than the sum of the single savings
