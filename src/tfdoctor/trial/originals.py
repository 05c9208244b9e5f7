"""The files that a trial rests on, as they were when it began."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self

from tfdoctor.terms.errors import InputError
from tfdoctor.terms.record import Record, field

Stamp = tuple[int, int, int, int]  # What changes with the text of a file: times in ns, size in bytes, and inode


class Originals(Record):
    """The texts of files; the changed copies that variants see are made from them."""

    texts: Mapping[Path, bytes]
    _stamps: dict[Path, Stamp | None] = field(default_factory=dict)

    @classmethod
    def of(cls, paths: Iterable[Path]) -> Self:
        """Read the files.

        Raises:
            InputError: one cannot be read.
        """
        stamps = {path: _stamp(path) for path in paths}
        return cls({path: _read(path) for path in stamps}, stamps)

    def must_be_unchanged(self) -> None:
        """Check that the files are as they were: runs as it is would otherwise see another text than variants.

        Raises:
            InputError: one has changed, or is gone.
        """
        for path, text in self.texts.items():
            now = _stamp(path)
            if now is not None and now == self._stamps[path]:
                continue
            if now is None or _read(path) != text:
                raise InputError(
                    f"{path} changed while the trial ran, so nothing is claimed: "
                    "try the program again, and leave its files unchanged meanwhile."
                )
            self._stamps[path] = now


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): run the trial where the source is.") from error
