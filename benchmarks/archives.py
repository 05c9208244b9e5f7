"""Scripts that others wrote are data: one archive a round, with its key and a README.

The commands that run them unpack them. ``python -m zipfile -e ROUND.zip DIR`` shows a round as files. To add a
round, write its cases in a folder, score that, and pack it when all is declared:
``python -m benchmarks.archives DIR ROUND.zip``.
"""

import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

PACKED = (2026, 1, 1, 0, 0, 0)
"""The date of all files in archives: the same files make the same archive."""


@contextmanager
def unpacked(source: Path) -> Iterator[Path]:
    """Have the files of an archive in a folder for now; a folder is itself.

    Raises:
        OSError: there is no such archive.
        zipfile.BadZipFile: it is none.
    """
    if source.is_dir():
        yield source.resolve()
        return
    with TemporaryDirectory() as folder:
        with zipfile.ZipFile(source) as archive:
            archive.extractall(folder)
        yield Path(folder)


def pack(folder: Path, archive: Path) -> None:
    """Write all files of a folder into an archive, as they are: the scripts of a pair are nearly the same.

    What holds the archive, git or a source distribution, compresses one beside the other, where an archive would
    compress each by itself.
    """
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as out:
        for file in sorted(
            path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
        ):
            entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), PACKED)
            entry.external_attr = 0o644 << 16
            out.writestr(entry, file.read_bytes())


if __name__ == "__main__":
    pack(Path(sys.argv[1]), Path(sys.argv[2]))
