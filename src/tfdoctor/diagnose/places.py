"""Where findings are shown whose own line is unknown, or lies in no file of the repository."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from tfdoctor.diagnosis import Result
from tfdoctor.facts.run.program import Places
from tfdoctor.recording import MANIFEST, Recording
from tfdoctor.scrub.paths import PACKAGES
from tfdoctor.terms.verdict import Finding, Place, PlaceKind


def placed(recording: Recording, results: Iterable[Result]) -> tuple[Result, ...]:
    """Return the results with the places at which a finding without a line is shown."""
    fallbacks = tuple(_fallbacks(recording))
    return tuple(
        replace(result, fallbacks=fallbacks) if isinstance(result.outcome, Finding) else result
        for result in results
    )


def _fallbacks(recording: Recording) -> Iterator[Place]:
    """Yield the training call, the script and the trace, as far as the recording names them."""
    at, manifest = Places.of(recording), recording.manifest
    if manifest is not None:
        traced = manifest.window.at if manifest.window else None
        if loop := at(traced or manifest.steps.at):
            yield Place(loop.path, loop.line, PlaceKind.TRAINING_CALL)
        if manifest.script and not PACKAGES.search(manifest.script):  # no kernel of a notebook
            yield Place(at.shown(manifest.script), 1, PlaceKind.SCRIPT)
    described = [recording.root / MANIFEST] if recording.root else []
    for file in (*recording.traces, *described)[:1]:
        # As code review names files: from the current folder, or by the name alone.
        whole, here = file.resolve(), Path.cwd()
        within = whole.is_relative_to(here)
        path = whole.relative_to(here).as_posix() if within else whole.name
        yield Place(path, 1, PlaceKind.TRACE)
