"""Opens the filesystem of a URL, and says in one sentence why it cannot be used."""

import logging
import re
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple, TypeVar

from tfdoctor.terms.errors import InputError

# At least two letters before "://": one is a drive of Windows.
URL = re.compile(r"[a-z][a-z0-9+.-]+://.*", re.DOTALL | re.IGNORECASE)
# The optional dependencies of a scheme.
EXTRAS = {"gs": "gcs", "gcs": "gcs", "s3": "s3", "s3a": "s3", "az": "azure", "abfs": "azure", "abfss": "azure"}
ATTEMPTS = 3  # A connection that is cut in the middle is tried again; the packages for buckets do so by themselves

# What errors of the connection mean, and what to do; those of a filesystem's package have them as their cause.
CAUSES: Mapping[type[BaseException], tuple[str, str]] = {
    ConnectionRefusedError: ("the server refuses the connection", "check the port, and that the server runs"),
    socket.gaierror: ("the host is unknown", "check the name of the host, and the connection to the network"),
}

# Of one file: a server may send without end, and larger traces need more memory than most machines have.
MOST_BYTES = 8 * 2**30
# A server may also never come to an end of a small file: seconds for its start, and bytes in each after that.
PATIENCE_S, SLOWEST = 60.0, 10_000

READ, WRITE = "cannot be read", "cannot be written"  # What fails
T = TypeVar("T")


class Remote(NamedTuple):
    """A place at a URL."""

    url: str
    filesystem: Any  # of fsspec, which has no types
    path: str  # there

    @property
    def name(self) -> str:
        """The name of the file or folder there."""
        return PurePosixPath(self.path).name or "recording"

    @property
    def is_bucket(self) -> bool:
        """Whether it is in a bucket, which has no folders."""
        return self.url.partition("://")[0].lower() in EXTRAS

    @property
    def is_web(self) -> bool:
        """Whether it is on a web server, which shows a folder as a page and takes no files."""
        return "http" in str(self.filesystem.protocol)

    def lacks_bucket(self) -> bool:
        """Say whether its bucket is known not to exist; one that may not be listed is believed to."""
        try:
            return self.is_bucket and not self.filesystem.exists(self.path.partition("/")[0])
        except Exception:  # noqa: BLE001  # each package has its own for a refusal
            return False

    def exists(self) -> bool:
        """Say whether there is something; a web server that does not answer is an error, not a no.

        Raises:
            InputError: it cannot be read.
        """
        strict = {"strict": True} if self.is_web else {}
        return bool(self.attempt(READ, lambda: self.filesystem.exists(self.path, **strict)))

    def attempt(self, what: str, action: Callable[[], T]) -> T:
        """Return what an action on the filesystem returns; it is tried again if the connection fails.

        Raises:
            InputError: it failed; ``what`` is READ or WRITE.
        """
        for left in reversed(range(1 if self.is_bucket else ATTEMPTS)):
            try:
                return action()
            except FileNotFoundError as error:
                nothing = f"There is nothing at {self.url}: check the address."
                nowhere = f"{self.url} {what} (its bucket or folder does not exist)."
                raise InputError(nothing if what == READ else nowhere) from error
            except PermissionError as error:
                raise InputError(f"{self.url} {what} ({_reason(error)}): check your credentials.") from error
            except Exception as error:
                if not left:
                    raise InputError(f"{self.url} {what} {_explained(error)}.") from error
        raise AssertionError

    def copied(self, path: str, folder: Path, name: str) -> Path:
        """Copy a file into a folder, under a name that may have folders in it, and check that all of it came.

        Raises:
            InputError: it cannot be read, is too large or too slow, or its name leads out of the folder.
        """
        from fsspec.callbacks import Callback  # noqa: PLC0415 - only for URLs

        parts = PureWindowsPath(name)  # both kinds of slashes, and drives, on every machine
        if parts.anchor or ".." in parts.parts:
            raise InputError(f"{self.url} lists {path!r}, which lies outside of it: name the recording itself.")
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)

        def copy() -> None:
            begun = time.monotonic()

            def count(size: int | None, copied: int, **_: object) -> None:
                if time.monotonic() - begun > PATIENCE_S + copied / SLOWEST:
                    raise OSError(f"it comes at less than {SLOWEST // 1000} kB a second")
                if max(size or 0, copied) > MOST_BYTES:
                    raise OSError(f"it has more than {MOST_BYTES // 2**30} GB")

            self.filesystem.get_file(path, str(target), callback=Callback(hooks={"count": count}))
            _whole(target.stat().st_size, self.filesystem.size(path), "came")

        self.attempt(READ, copy)
        return target

    def upload(self, file: Path) -> None:
        """Upload a file, and check that all of it arrived.

        Raises:
            InputError: it cannot be written.
        """

        def put() -> None:
            if not self.is_bucket:  # there, it would make the bucket
                self.filesystem.makedirs(self.path.rpartition("/")[0], exist_ok=True)
            self.filesystem.put_file(str(file), self.path)
            self.filesystem.invalidate_cache()
            _whole(self.filesystem.size(self.path), file.stat().st_size, "arrived")

        self.attempt(WRITE, put)

    def remove(self, is_old: Callable[[str], bool]) -> None:
        """Remove the files whose names are those of old ones.

        Raises:
            InputError: one cannot be removed.
        """

        def remove() -> None:
            self.filesystem.invalidate_cache()
            there = self.filesystem.exists(self.path)
            for path in self.filesystem.find(self.path, maxdepth=1) if there else ():
                if is_old(path.rpartition("/")[2]):
                    self.filesystem.rm_file(path)

        self.attempt(WRITE, remove)


def is_url(text: str) -> bool:
    """Say whether a text is a URL and no path."""
    return bool(URL.fullmatch(text))


def opened(url: str) -> Remote:
    """Return the place at a URL.

    Raises:
        InputError: its scheme is unknown, or needs a package that is not installed; or it names no bucket.
    """
    import fsspec  # noqa: PLC0415 - only for URLs

    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    if scheme in EXTRAS and not rest.partition("/")[0]:  # it would list all buckets of whoever runs this
        raise InputError(f"{url} names no bucket: check the address.")
    for name in ("aiohttp", "asyncio", "botocore", "fsspec", "gcsfs", "s3fs"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what is wrong becomes one sentence
    try:
        filesystem, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        extra = EXTRAS.get(scheme)
        how = f"run pip install 'tfdoctor[{extra}]'" if extra else _reason(error)
        raise InputError(f"{url} needs a package that is not installed: {how}.") from error
    except Exception as error:
        raise InputError(f"{url} cannot be opened ({_reason(error)}).") from error
    return Remote(url, filesystem, path)


def _whole(part: int | None, of: int | None, did: str) -> None:
    if part is not None and of is not None and part != of:
        raise OSError(f"{part:,} of {of:,} bytes {did}")


def _explained(error: Exception) -> str:
    cause: BaseException | None = error
    while cause is not None:
        for kind, (reason, advice) in CAUSES.items():
            if isinstance(cause, kind):
                return f"({reason}): {advice}"
        cause = cause.__cause__ or cause.__context__
    return f"({_reason(error)})"


def _reason(error: Exception) -> str:
    """Return the first line of an error."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
