"""The edits that proved to help, as one diff."""

from collections.abc import Sequence
from pathlib import Path

from tfdoctor.edits.diff import FileChange, unified
from tfdoctor.edits.source import within_repository
from tfdoctor.recording import Recording
from tfdoctor.trial.originals import Originals
from tfdoctor.trial.variants import Variant


def diff(kept: Sequence[Variant], before: Originals, recording: Recording) -> bytes:
    """Return a diff of the last variant, which holds the changes of all, for `git apply` in the run's folder."""
    if not kept:
        return b""
    folder = Path(recording.manifest.cwd if recording.manifest else "").resolve()
    changes = [
        FileChange(path.relative_to(folder).as_posix(), before.texts[path], data)
        for path, data in kept[-1].files.items()
        if path.is_relative_to(folder)
    ]
    return unified(changes, within_repository(folder))
