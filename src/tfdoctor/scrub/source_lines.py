"""Removes the user's source from a diagnosis: any part of a line can be a secret."""

from dataclasses import replace

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.results import Edit, Result
from tfdoctor.terms.verdict import Errored, Finding

LEFT_OUT = "# Your source lines are removed (--scrub)."  # Precedes the example that a report shows instead

NO_TRACEBACK = "Traceback removed (--scrub): it quotes source lines."


def without_source(diagnosis: Diagnosis) -> Diagnosis:
    """Return the diagnosis with examples instead of the user's lines, and without the patch of them."""
    return replace(diagnosis, results=tuple(map(_without, diagnosis.results)), repository={}, lines={}, patch=b"")


def _without(result: Result) -> Result:
    outcome, edits = result.outcome, result.edits
    if isinstance(outcome, Errored) and result.rule.own:
        return replace(result, outcome=replace(outcome, traceback=NO_TRACEBACK))
    if not isinstance(outcome, Finding) or not any(map(_shown, edits)):
        return result
    remedies = list(outcome.remedies)
    for at, (remedy, edit) in enumerate(zip(outcome.remedies, edits, strict=False)):
        if _shown(edit):
            lines = (LEFT_OUT, "# An example:", remedy.code) if remedy.code else (LEFT_OUT,)
            remedies[at] = replace(remedy, code="\n".join(lines))
    bare = tuple(replace(edit, before="", after="", replacements=()) for edit in edits)
    return replace(result, outcome=replace(outcome, remedies=tuple(remedies)), edits=bare)


def _shown(edit: Edit) -> bool:
    return bool(edit.before or edit.after)
