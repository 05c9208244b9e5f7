"""The files as chosen findings change them: for a trial, which runs the program with them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tfdoctor.diagnosis.results import Result
from tfdoctor.edits.patch import Draft
from tfdoctor.edits.source import Sources
from tfdoctor.edits.splice import Declined, Splice, spliced
from tfdoctor.recording import Recording
from tfdoctor.terms.verdict import Finding


def changed_files(
    recording: Recording, results: Sequence[Result], more: Iterable[tuple[str, Sequence[Splice]]] = ()
) -> Mapping[Path, bytes]:
    """Return the files that the first edits of these findings change, by absolute path with links resolved.

    Of each finding, the edits of one kind are taken: its other remedies are other ways to the same end.
    ``more`` are further replacements, each with the name of its file in reports.

    Raises:
        Declined: why a finding has no edit, or does not go with those before it.
    """
    draft = Draft(Sources(recording))
    for result in results:
        _add(draft, result)
    for path, splices in more:
        if why := draft.add(draft.sources[path], list(splices)):
            raise Declined(why)
    return {
        Path(draft.sources.recorded(source.path)).resolve(): source.encoded(
            spliced(source.text, draft.splices[name])
        )
        for name, source in draft.named.items()
        if name in draft.splices
    }


def _add(draft: Draft, result: Result) -> None:
    """Add the edits of a finding."""
    if not isinstance(result.outcome, Finding):
        raise Declined("it is no finding")
    why, taken = "", ""
    for remedy in result.outcome.remedies:
        if taken not in ("", remedy.edit_id):
            continue
        try:
            _, source, splices = draft.edit(remedy, result.rule)
        except Declined as reason:
            why = why or str(reason)
            continue
        missing = draft.add(source, splices)
        taken, why = (taken, missing) if missing else (remedy.edit_id, why)
    if not taken:
        raise Declined(why or "it has no remedy")
