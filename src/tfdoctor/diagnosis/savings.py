"""What changes save of the step, the run and the energy, alone and together, and which is fixed before which."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from tfdoctor.diagnosis.step import Parts
from tfdoctor.terms.json_form import Count, Ms, Number, Share, Sometimes
from tfdoctor.terms.kinds import EnergySource
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.run_time import CounterPower
from tfdoctor.terms.verdict import Bound, Recurrence


class Takes(Record):
    """The time that a general finding names; what a change saves of it is unknown."""

    ms_per_step: Ms
    share: Share


class Saving(Takes, kw_only=True):
    """The saving of a change, computed by the step model."""

    bound: Bound
    how: str
    after: tuple[str, ...] = ()  # rules to fix first; before that it saves little or nothing


class RunSaving(Record, kw_only=True):
    """What a change saves of the run, computed by the run model.

    ``share`` is of the whole run as recorded; ``rated_share`` of what recurs in a longer run, or, of time that
    comes once, of the run of as many epochs as are known: the severity follows it. ``each_ms`` is the saving each
    time it ``recurs``.
    """

    ms: Ms
    share: Share
    rated_share: Number
    recurs: Recurrence
    each_ms: Ms
    times: Count
    bound: Bound
    how: str = ""
    extrapolated_share: Number | None = None  # of a run of as many epochs as asked for


class RunTogether(Record, kw_only=True):
    """What all changes save of the run together."""

    ms: Ms
    share: Share
    rules: tuple[str, ...]
    bound: Bound
    phases_after_ms: Mapping[str, Ms] = field(default_factory=dict)  # phase: ms with them
    extrapolated_share: Number | None = None  # of a run of as many epochs as asked for


class Together(Takes, kw_only=True):
    """The saving of all changes combined."""

    rules: tuple[str, ...]
    after_ms: Parts = field(default_factory=dict)  # the parts of the step with them
    bound: Bound = Bound.EXPECTED  # AT_MOST when one of them is
    more_than_alone: Sometimes[bool] = False  # than the sum of the single savings


class EnergyAmount(Record, kw_only=True):
    """An energy in joules; in US dollars and grams of CO2 where the price of a kWh was given."""

    joules: Number = field(name="j")
    usd: Sometimes[Number | None] = None
    gco2: Sometimes[Number | None] = None


class EnergyRow(CounterPower, kw_only=True):
    """What the counters of one kind tell.

    ``idle_per_step`` is the part of ``per_step`` that idle power takes while no kernel runs: at least, as boards
    take more between kernels than between runs. None is unknown.
    """

    per_step: EnergyAmount | None = None
    idle_per_step: EnergyAmount | None = None
    per_epoch: EnergyAmount | None = None
    run: EnergyAmount  # from the first reading to the last


class EnergyAccount(Record, kw_only=True):
    """The energy of the run, by its counters, and the prices of a kWh that the user gave."""

    rows: tuple[EnergyRow, ...]
    measured_s: Number  # time of training that the mean power is of
    epoch_steps: Count | None = None
    usd_per_kwh: Sometimes[Number | None] = None
    gco2_per_kwh: Sometimes[Number | None] = None


class EnergySaving(Record, kw_only=True):
    """What a change saves of energy: time at a power that was measured."""

    source: EnergySource
    power_w: Number  # of the time that is saved
    per_step: EnergyAmount
    run: EnergyAmount | None = None  # of the recorded run
    bound: Bound


class Relationship(StrEnum):
    """How a finding relates to others."""

    FIRST = "first"  # fix the others before it
    INSTEAD = "instead"  # fix it or the others
    UNNEEDED = "unneeded"  # saves nothing more after the others
    CEILING = "ceiling"  # bounds the cost of a whole stage; the others are about parts of it


class Relation(Record):
    """How a finding relates to others, and why (for ``CEILING``: the stage)."""

    kind: Relationship
    rule: str
    others: Annotated[tuple[str, ...], Meta(min_length=1)]
    why: str = ""


class Turn(Record):
    """A finding and its saving after the fixes before it."""

    rule: str
    ms_per_step: Ms
    bound: Bound


class Order(Record, kw_only=True):
    """The order in which to fix findings that affect each other."""

    turns: tuple[Turn, ...] = ()
    relations: tuple[Relation, ...] = ()

    @property
    def rivals(self) -> frozenset[frozenset[str]]:
        """The pairs of rules whose findings exclude each other: fix one or the other."""
        instead = [one for one in self.relations if one.kind is Relationship.INSTEAD]
        return frozenset(frozenset((one.rule, other)) for one in instead for other in one.others)
