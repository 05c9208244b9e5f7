"""Writes files, each completely or not at all, and says why one cannot be written."""

import errno
import os
import resource
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tfdoctor.terms.errors import OutputError

READABLE = 0o644  # Mode of a new file: a report is to be read
NAME = 50  # Characters of a file's name in that of the temporary one, which is longer


@contextmanager
def replaced(path: Path, *, named: bool = False) -> Iterator[Path]:
    """Give a temporary file, which becomes the file at the end; whatever fails, the old file stays, alone.

    A file keeps its mode. A link stays one if it leads to a file of the same folder, or if the user has `named` it;
    otherwise the file replaces it: nobody's recording says where else we write.

    Raises:
        OSError: it cannot be written, or is no file.
    """
    folder, target = (path.parent.resolve(), Path(os.path.realpath(path)))  # a link may lead to itself
    if not named and not target.is_relative_to(folder):
        target = folder / path.name
    elif target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "it is not a file", str(path))
    known = target.exists() and not target.is_symlink()
    mode = stat.S_IMODE(target.stat().st_mode) & 0o777 if known else READABLE
    number, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:NAME]}")
    os.close(number)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(mode)  # it was private
        temporary.replace(target)
    except BaseException:  # Ctrl-C too
        temporary.unlink(missing_ok=True)
        raise


def replace_file(path: Path, content: str | bytes, *, named: bool = False) -> None:
    """Write a file in place of what it was, as `replaced` does.

    Raises:
        OSError: it cannot be written, or is no file.
    """
    with replaced(path, named=named) as temporary:
        temporary.write_bytes(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)


@contextmanager
def writing(what: object, cure: str = "choose another folder") -> Iterator[None]:
    """Say in a sentence why something cannot be written, and what helps.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise OutputError(unwritten(what, error, cure)) from error


def content_to_replace(path: Path, cure: str) -> bytes:
    """Return what a file has that is to be written in the end; b"" where there is none. Nothing changes there.

    Raises:
        OutputError: it could not be written; ``cure`` is what helps.
    """
    with writing(path, cure):
        if path.is_dir():
            raise OutputError(f"{path} is a folder: {cure}.")
        if not path.parent.is_dir():
            raise OutputError(f"{path.parent} is no folder: {cure}.")
        if path.exists():
            path.open("ab").close()
            return path.read_bytes()
        tempfile.TemporaryFile(dir=path.parent).close()
        return b""


def unwritten(what: object, error: OSError, cure: str = "choose another folder") -> str:
    """Return the sentence about what cannot be written, and what helps: no other folder if files may not grow."""
    if error.errno != errno.EFBIG:
        return f"{what} cannot be written ({error.strerror}): {cure}."
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    limit = "the largest file that is possible there"
    if most != resource.RLIM_INFINITY:
        limit = f"the limit of {most:,} bytes for a file (`ulimit -f`)"
    return (
        f"{what} cannot be written: it is larger than {limit}; raise that, or make a smaller recording "
        "with fewer --steps or --no-trace."
    )
