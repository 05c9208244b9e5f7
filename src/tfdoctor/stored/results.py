"""The result of a rule in a report: its outcome with what was computed of it, flat."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, cast

from cattrs import Converter

from tfdoctor.diagnosis import Edit, EnergySaving, Measured, Result, RunSaving, Saving, Takes
from tfdoctor.diagnosis.rule import Rule, Topic
from tfdoctor.terms.json_form import Json, expect
from tfdoctor.terms.verdict import Errored, Finding, Healthy, NotApplicable, Outcome, Place, Remark, Severity

Object = dict[str, Json]

# Fields of a verdict that stand beside the result's own; the others are what savings are computed from.
SHOWN = ("summary", "evidence", "remedies")
UNSAID = "the report does not say why"  # Of an edit that is in no patch, in reports of version 0.1.0

COMPUTED = {"saving": Saving | None, "run": RunSaving | None, "takes": Takes | None, "measured": Measured | None}

# Likewise, left out where there is none: few machines show counters.
MEASURED_BY_SOME = {"energy": EnergySaving | None}

"""What the models and trials say of a finding."""


class ResultForms:
    """Writes and reads results, whose rules are known by name."""

    def __init__(self, made: Converter, rules: Mapping[str, Rule]) -> None:
        self.made, self.rules = made, rules

    def write(self, result: Result) -> Object:
        """Return a result as the report has it."""
        rule = result.rule
        entry: Object = {
            "rule": rule.name,
            "title": rule.doc.title,
            "topic": rule.topic.value,
            **({"own": True} if rule.own else {}),
            **({"general": True} if rule.general else {}),
            **{name: self.made.unstructure(getattr(result, name), kind) for name, kind in COMPUTED.items()},
            **{
                name: self.made.unstructure(getattr(result, name), kind)
                for name, kind in MEASURED_BY_SOME.items()
                if getattr(result, name) is not None
            },
            "severity": None,
            "summary": "",
            "reason": "",
            "known": result.known,
            "at": None,
            "evidence": [],
            "remedies": [],
        }
        return entry | self._outcome(result)

    def _outcome(self, result: Result) -> Object:
        match result.outcome:
            case Finding() as finding:
                return self._finding(result, finding)
            case Remark() as remark:
                return {"outcome": "remark", **self._split(remark)}
            case Healthy() as healthy:
                return {"outcome": "healthy", **self._split(healthy)}
            case NotApplicable(reason=reason):
                return {"outcome": "not-applicable", "reason": reason}
            case Errored(error=error, traceback=traceback):
                return {"outcome": "errored", "reason": error, "traceback": traceback}

    def _finding(self, result: Result, finding: Finding) -> Object:
        severity = result.severity or finding.severity
        fallbacks = self.made.unstructure(result.fallbacks)
        found: Object = {
            "outcome": "finding",
            **self._split(finding),
            "severity": severity and severity.name.lower(),
            "at": self.made.unstructure(result.place) if result.place else None,
            **({"fallbacks": fallbacks} if fallbacks else {}),
        }
        edits = map(self._edit, result.edits)
        found["remedies"] = [
            {**remedy, **edit} for remedy, edit in zip_longest(found["remedies"], edits, fillvalue={"edit": None})
        ]
        return found

    def _split(self, verdict: Finding | Remark | Healthy) -> Object:
        """Return the fields of a verdict, those that savings are computed from apart."""
        found = self.made.unstructure(verdict)
        shown = {name: found.pop(name) for name in SHOWN if name in found}
        return {**shown, **({"stated": found} if found else {})}

    def _edit(self, edit: Edit) -> Object:
        """Return an edit of the user's lines; apart, why a remedy has only an example."""
        found = self.made.unstructure(edit)
        if not (edit.before or edit.after):
            return {"edit": None, "by_hand": found}
        return {"edit": {**found, "in_patch": not edit.missing}}

    def read(self, value: Json) -> Result:
        """Return a result.

        Raises:
            ValueError, KeyError: it is none.
        """
        found = expect(value, Mapping, "an object")
        computed: dict[str, Any] = {
            name: self.made.structure(found.get(name), cast("Any", kind))
            for name, kind in {**COMPUTED, **MEASURED_BY_SOME}.items()
        }
        rule, severity = self._rule(found), found.get("severity")
        outcome = rule.counted(self._verdict(found))
        rated = severity and not isinstance(outcome, Remark)
        return Result(
            rule=rule,
            outcome=outcome,
            severity=self.made.structure(severity, Severity) if rated else None,
            edits=self._edits(found.get("remedies") or ()),
            known=self.made.structure(found.get("known"), cast("Any", bool | None)),
            fallbacks=self._fallbacks(found),
            **computed,
        )

    def _rule(self, found: Mapping[str, Json]) -> Rule:
        name = expect(found.get("rule"), str, "the name of a rule")
        if name in self.rules:
            return self.rules[name]
        flags = {flag: bool(found.get(flag)) for flag in ("own", "general")}
        return Rule.named(name, Topic(str(found.get("topic"))), str(found.get("title") or name), **flags)

    def _verdict(self, found: Mapping[str, Json]) -> Outcome:
        match found.get("outcome"):
            case "finding":
                return self.made.structure(self._own(found), Finding)
            case "remark":
                return self.made.structure(self._own(found), Remark)
            case "healthy":
                return self.made.structure(self._own(found), Healthy)
            case "not-applicable":
                return NotApplicable(reason=expect(found.get("reason"), str, "a text"))
            case "errored":
                return Errored(error=str(found.get("reason")), traceback=str(found.get("traceback", "")))
            case other:
                raise ValueError(f"expected an outcome, not {other!r}")

    def _own(self, found: Mapping[str, Json]) -> Object:
        """Return the fields of the verdict alone: the result has some of the same names."""
        shown = {name: found[name] for name in SHOWN if name in found}
        return {**shown, **expect(found.get("stated", {}), Mapping, "an object")}

    def _edits(self, remedies: Any) -> tuple[Edit, ...]:  # noqa: ANN401 - JSON
        found = [remedy.get("edit") or remedy.get("by_hand") for remedy in remedies]
        edits = [self._edit_of(one) for one in found if one]
        return tuple(edits) if len(edits) == len(found) else ()

    def _edit_of(self, found: Mapping[str, Json]) -> Edit:
        left_out = found.get("in_patch") is False and "missing" not in found
        return self.made.structure({**found, **({"missing": UNSAID} if left_out else {})}, Edit)

    def _fallbacks(self, found: Mapping[str, Json]) -> tuple[Place, ...]:
        """Return the places where a finding without a line is shown; of earlier reports the only one known."""
        at = found.get("at")
        known = [at] if at and at.get("kind") != "line" else []
        return self.made.structure(found.get("fallbacks", known), tuple[Place, ...])
