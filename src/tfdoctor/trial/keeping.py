"""The edits that proved to help, as one diff."""

from collections.abc import Sequence
from pathlib import Path

from tfdoctor.edits.patch import FileChange, unified
from tfdoctor.edits.source import within_repository
from tfdoctor.recording import Recording
from tfdoctor.terms.record import Record
from tfdoctor.trial.originals import Originals
from tfdoctor.trial.variants import Variant


class Kept(Record):
    """A diff for `git apply` in a folder, and the changed files that are outside of it."""

    diff: bytes = b""
    folder: Path = Path()
    left_out: tuple[Path, ...] = ()


def diff(kept: Sequence[Variant], before: Originals, recording: Recording) -> Kept:
    """Return a diff of the last variant, which holds the changes of all.

    Its folder is the one of the run or, where that does not hold the files, the one of the script, as in the patch
    of a report.
    """
    files = kept[-1].files if kept else {}
    folders = recording.manifest.folders if recording.manifest else ()
    folder = max(  # of several with as many of the files, the first
        (Path(one).resolve() for one in folders),
        key=lambda one: sum(path.is_relative_to(one) for path in files),
        default=Path.cwd(),
    )
    changes = [
        FileChange(path.relative_to(folder).as_posix(), before.texts[path], data)
        for path, data in files.items()
        if path.is_relative_to(folder)
    ]
    left_out = tuple(path for path in files if not path.is_relative_to(folder))
    return Kept(unified(changes, within_repository(folder)), folder, left_out)
