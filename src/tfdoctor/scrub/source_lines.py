"""Takes the user's source out of a diagnosis: nobody can tell which part of a line is a secret."""

from dataclasses import replace

from tfdoctor.diagnosis import Diagnosis, Edit, Result
from tfdoctor.verdict import Errored, Finding, Remedy

LEFT_OUT = "# Your own lines are left out (--scrub)."
"""Stands before the example that a report shows instead of them."""

NO_TRACEBACK = "It is left out (--scrub): it quotes the rule's source."


def without_source(diagnosis: Diagnosis) -> Diagnosis:
    """Return the diagnosis with examples instead of the user's own lines; the patch keeps them, to apply."""
    return replace(diagnosis, results=tuple(map(_without, diagnosis.results)))


def _without(result: Result) -> Result:
    outcome, edits = result.outcome, result.edits
    if isinstance(outcome, Errored) and result.rule.own:
        return replace(result, outcome=replace(outcome, traceback=NO_TRACEBACK))
    if not isinstance(outcome, Finding) or not any(map(_shown, edits)):
        return result
    remedies = tuple(
        _as_example(remedy) if at < len(edits) and _shown(edits[at]) else remedy
        for at, remedy in enumerate(outcome.remedies)
    )
    bare = tuple(replace(edit, before="", after="") for edit in edits)
    return replace(result, outcome=replace(outcome, remedies=remedies), edits=bare)


def _shown(edit: Edit) -> bool:
    return bool(edit.before or edit.after)


def _as_example(remedy: Remedy) -> Remedy:
    lines = (LEFT_OUT, "# An example:", remedy.code) if remedy.code else (LEFT_OUT,)
    return replace(remedy, code="\n".join(lines))
