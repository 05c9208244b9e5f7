"""A rule is a module or a package, whose name is its id, and the page beside it, which is its documentation."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from math import inf
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

from tfdoctor.facts.chart import Chart, Unavailable, kind_of, needs
from tfdoctor.terms.pages import RuleDoc, docstring
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Finding, Outcome, Remark, Verdict


class Topic(StrEnum):
    """The part of training, or of the run around it, that a rule checks."""

    INPUT = "input"
    PRECISION = "precision"
    OPERATIONS = "operations"
    EXECUTION = "execution"
    SCALE = "scale"
    RUN = "run"
    RECORDING = "recording"


@dataclass_transform(frozen_default=True)
class RuleLimits:
    """The thresholds of a built-in rule, whose ``Limits`` this makes a frozen dataclass."""

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


def limit(default: float, why: str = "", *, least: float = 0.0, most: float = inf) -> Any:  # noqa: ANN401 - as dataclasses.field, which a checker sees through
    """Return a field of a rule's ``Limits``: its default, and what it limits, with unit and reason.

    Values below ``least`` or above ``most`` are refused: a share is at most 1. A built-in rule says ``why`` on its
    page, in the table of its limits.

    A rule with thresholds has a frozen dataclass ``Limits`` of such fields, and a ``check`` with a last parameter
    ``limits: Limits = Limits()``. Users set them in ``[tool.tfdoctor.limits.RULE]``.
    """
    return field(default=default, metadata={"why": why, "least": least, "most": most})


def share_limit(default: float, why: str = "") -> Any:  # noqa: ANN401 - as limit
    """Return a field of a rule's ``Limits`` that is a share of something, 0 to 1."""
    return limit(default, why, most=1.0)


# Of a rule that does not say what is in the way of one.
NO_EDIT = "this change has to be made by hand: the rule describes no edit"


class Rule(Record):
    """One problem that a training run can have, and how to detect it."""

    name: str
    topic: Topic
    since: str
    doc: RuleDoc
    needs: tuple[str, ...]
    check: Callable[..., Verdict]
    sick: Callable[[], Verdict] | None = None
    # Of the user's own rule: the smallest run with the fault, and one without it.
    healthy: Callable[[], Verdict] | None = None
    # Functions of facts that decide the verdict before ``check`` where they return one.
    preconditions: tuple[Callable[..., Verdict | None], ...] = ()
    limits: object | None = None  # Of the rule's dataclass ``Limits``; None without thresholds of its own
    own: bool = False  # Whether it is the user's own rule
    # Whether it runs after all others and speaks only of the time that they leave unexplained.
    general: bool = False
    # The module of a rule's package that makes its edits, and those of other rules that the user's own rules may
    # use; imported by ``edits``, which rules must not know.
    edit_modules: tuple[str, ...] = ()
    by_hand: str = NO_EDIT  # A clause that says what is in the way of an edit, for the remedies that have none

    @classmethod
    def from_module(cls, module: ModuleType) -> Self:
        """Read the rule that a module defines; its folder is the topic of a built-in one, or says it.

        Raises:
            ValueError: the page lacks a section.
            AttributeError: the module lacks a part of a rule.
        """
        preconditions = getattr(module, "PRECONDITIONS", ())
        folder, _, name = module.__name__.rpartition(".")
        topic = getattr(module, "TOPIC", None) or getattr(importlib.import_module(folder), "TOPIC", None)
        doc = RuleDoc.parse(module.__doc__ or docstring(module))
        edit = f"{module.__name__}.edit"
        has_edit = hasattr(module, "__path__") and find_spec(edit) is not None
        wanted = [kind for part in (module.check, *preconditions) for kind in needs(part).values()]
        return cls(
            name=name.replace("_", "-"),
            topic=topic or Topic(folder.rpartition(".")[2]),
            since=getattr(module, "SINCE", doc.since),
            doc=doc,
            needs=tuple(dict.fromkeys(kind_of(kind).__name__ for kind in wanted)),
            check=module.check,
            sick=getattr(module, "sick", None),
            healthy=getattr(module, "healthy", None),
            preconditions=preconditions,
            limits=module.Limits() if hasattr(module, "Limits") else None,
            general=getattr(module, "GENERAL", False),
            edit_modules=(edit,) if has_edit else (),
            by_hand=getattr(module, "BY_HAND", doc.by_hand) or NO_EDIT,
        )

    @classmethod
    def named(cls, name: str, topic: Topic, title: str, *, own: bool, general: bool) -> Self:
        """Return a rule of a stored report that is not installed here: it can be named, and not applied.

        Its functions raise a LookupError.
        """

        def absent(*_: object) -> Verdict:
            raise LookupError(f"the rule {name} is not installed here")

        return cls(
            name=name, topic=topic, since="", doc=RuleDoc(title), needs=(), check=absent,
            own=own, general=general,
        )  # fmt: skip

    def why(self, limit: Field[Any]) -> str:
        """Return what a limit limits, with unit and reason; "" where neither the code nor the page says it."""
        return limit.metadata["why"] or self.doc.limits.get(limit.name, "")

    def bound(self) -> Callable[..., Verdict]:
        """Return ``check`` with the current limits, so that it takes only facts."""
        return self.check if self.limits is None else partial(self.check, limits=self.limits)

    def counted(self, outcome: Outcome) -> Outcome:
        """Return what an outcome counts as: what a rule about the recording finds is a remark on that."""
        if self.topic is not Topic.RECORDING or not isinstance(outcome, Finding):
            return outcome
        return Remark(summary=outcome.summary, evidence=outcome.evidence, remedies=outcome.remedies)

    def apply(self, chart: Chart, *given: object) -> Verdict:
        """Return the verdict of the first precondition that has one, else that of ``check``.

        Facts that are given take precedence over those of the chart. A verdict holds whatever else is missing.

        Raises:
            Unavailable: a fact that the rule needs is missing.
        """
        lacks = None
        for precondition in self.preconditions:
            try:
                verdict = chart.call(precondition, *given)
            except Unavailable as missing:
                lacks = lacks or missing
                continue
            if verdict is not None:
                return verdict
        facts = chart.supply(self.check, *given)
        if lacks:
            raise lacks
        return self.bound()(**facts)

    def edits(self) -> Mapping[str, Any]:
        """Return the edits of the rule's package, and of those it may use, by edit id: each a ``by_id.Kind``."""
        made: dict[str, Any] = {}
        for name in reversed(self.edit_modules):  # its own take precedence
            made |= importlib.import_module(name).EDITS
        return made
