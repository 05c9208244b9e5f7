"""Which parts of a program are worth taking out: those that its recording shows to take time."""

from collections.abc import Iterator, Sequence

from tfdoctor.diagnose.diagnose import chart_of
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Topic
from tfdoctor.facts.run_work.run_parts import RunPart, RunParts
from tfdoctor.recording import Recording
from tfdoctor.terms.kinds import Part
from tfdoctor.terms.text import prose
from tfdoctor.terms.verdict import Finding, Location
from tfdoctor.trial.variants import NotTried, Variant

# Share of what recurs in the run from which on a part is tried: less is within the usual interval of a trial.
WORTH = 0.02
# The same for a part that is tried without being asked for, because no finding has an edit for it.
UNEXPLAINED = 0.15
WHOLE = "the program without its parts"  # The name of what cannot be tried where no part is known
BOUND = "input-bound"  # The rule that bounds what all changes of the input can save


def of_recording(recording: Recording, diagnosis: Diagnosis) -> tuple[list[Variant], list[NotTried]]:
    """Return a variant for each part that takes time, the largest first; or why there is none."""
    chart = chart_of(recording)
    parts = chart.get(RunParts)
    if parts is None:
        return [], [NotTried(WHOLE, chart.why_missing(RunParts))]
    worth = [one for one in parts.parts if parts.share(one) >= WORTH]
    return [_variant(one, parts.share(one), diagnosis) for one in _distinct(worth)], []


def unexplained(variants: Sequence[Variant], diagnosis: Diagnosis) -> list[Variant]:
    """Return the large parts for which no finding has an edit."""
    edited = [result for result in diagnosis.results if _has_edit(result)]
    return [
        one
        for one in variants
        if one.without
        and (one.share or 0.0) >= UNEXPLAINED
        and not any(_covers(result, one.without) for result in edited)
    ]


def bound_of(diagnosis: Diagnosis) -> Result | None:
    """Return the finding that bounds what the input can save."""
    found = (r for r in diagnosis.results if isinstance(r.outcome, Finding) and r.saving)
    return next((result for result in found if result.rule.name == BOUND), None)


def _variant(part: RunPart, share: float, diagnosis: Diagnosis) -> Variant:
    bound = bound_of(diagnosis) if part.part is Part.INPUT else None
    return Variant(
        name=_named(part),
        without=part,
        share=share,
        rules=(BOUND,) if bound else (),
        promised=bound.saving if bound else None,
        may_keep=False,
    )


def _named(part: RunPart) -> str:
    """Return a name that tells a part from all others: results are kept by it."""
    return " ".join(filter(None, ("without", part.name, _line(part.at))))


def _line(at: Location | None) -> str:
    return f"({prose(at.path)}:{at.line})" if at else ""


def _distinct(parts: Sequence[RunPart]) -> Iterator[RunPart]:
    """Yield the parts without those that take the same out as one before."""
    seen = set()
    for one in parts:
        key = (one.part, one.name if one.part is Part.CALLBACK else one.line)
        if key not in seen:
            seen.add(key)
            yield one


def _has_edit(result: Result) -> bool:
    return any(edit.before or edit.after for edit in result.edits)


def _covers(result: Result, part: RunPart) -> bool:
    """Say whether the edit of a finding is about a part: of the input, or at its line."""
    if part.part is Part.INPUT:
        return result.rule.topic is Topic.INPUT
    places = {(place.path, place.line) for place in result.places}
    places |= {(edit.at.path, edit.at.line) for edit in result.edits if edit.at}
    return part.at is not None and (part.at.path, part.at.line) in places
