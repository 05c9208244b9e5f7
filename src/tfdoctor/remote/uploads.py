"""Uploads what a command wrote for a URL: it writes to a folder on this machine first."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tfdoctor.remote.filesystem import opened
from tfdoctor.terms.errors import InputError, NotEmptyError, OutputError
from tfdoctor.terms.text import counted


class Uploads:
    """The folders of this command whose files belong at URLs."""

    def __init__(self) -> None:
        self._urls: dict[Path, str] = {}
        self._removals: dict[Path, tuple[str, Callable[[str], bool]]] = {}
        self._sent: dict[Path, tuple[int, int]] = {}  # sizes and times of files that were uploaded

    def folder(self, url: str) -> Path:
        """Return a new folder whose files are uploaded to a URL when the command ends.

        Raises:
            InputError: the scheme of the URL is unknown, or needs a package that is not installed.
        """
        if opened(url).is_web:
            raise InputError(f"{url} can only be read: name a bucket or a folder for what is written.")
        folder = Path(tempfile.mkdtemp(prefix="tfdoctor-"))
        self._urls[folder] = url.rstrip("/")
        return folder

    def must_lack(self, file: Path) -> None:
        """Refuse a file that is at its URL already, or whose URL cannot be used: before hours of work, not after.

        Raises:
            NotEmptyError: it is there.
            InputError: the URL cannot be read, or its bucket does not exist.
        """
        shown = self.shown(file)
        if shown == str(file):
            return
        place = opened(shown)
        if place.exists():
            raise NotEmptyError(f"{shown} is there already: choose another folder, or remove it first.")
        if place.lacks_bucket():
            raise InputError(f"{shown} cannot be written (its bucket does not exist): check the address.")

    def with_former(self, folder: Path, name: str) -> Path:
        """Return a folder with the file of this name that is at its URL already, to continue with it.

        Raises:
            InputError: it is there and cannot be read.
        """
        if folder in self._urls and (place := opened(f"{self._urls[folder]}/{name}")).exists():
            place.copied(place.path, folder, name)
        return folder

    def shown(self, path: Path) -> str:
        """Return a path as the user knows it: the URL, for a file that will be there."""
        for folder, url in self._urls.items():
            if path == folder or folder in path.parents:
                return "/".join((url, *path.relative_to(folder).parts))
        return str(path)

    def written(self, path: Path) -> str:
        """Return what to say of a file that was written; one for a URL is on its way until the command ends."""
        shown = self.shown(path)
        return f"wrote {path}" if shown == str(path) else f"uploading {shown}"

    def remove_later(self, folder: Path, name: str, is_old: Callable[[str], bool]) -> None:
        """Remove old files, by their names, at `name` below a folder's URL, once the new ones are uploaded."""
        if folder in self._urls:
            self._removals[folder] = name, is_old

    def finish(self) -> Iterator[str]:
        """Upload all files, compare their sizes, and remove the folders; yield a sentence for each URL.

        Raises:
            OutputError: a file could not be uploaded; its folder stays.
        """
        while self._urls:
            folder, url = next(iter(self._urls.items()))
            try:
                files = self.save(folder)
            except InputError as error:
                raise OutputError(f"{error} What was to be uploaded stays in {folder}.") from error
            finally:
                del self._urls[folder]
            shutil.rmtree(folder)
            if files:
                yield f"tfdoctor: uploaded {counted(files, 'file')} to {url}"
            name, is_old = self._removals.pop(folder, ("", None))
            try:
                if is_old:
                    opened(f"{url}/{name}").remove(is_old)
            except InputError as error:  # all that is new is there
                yield f"tfdoctor: old files stay at {url}/{name}, remove them yourself: {error}"

    def save(self, folder: Path) -> int:
        """Upload what is new in a folder now, so that no kill loses it; return how many files the folder has.

        Raises:
            InputError: a file could not be uploaded.
        """
        url = self._urls.get(folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file()) if url else []
        for file in files:
            state = file.stat().st_size, file.stat().st_mtime_ns
            if self._sent.get(file) != state:
                opened(self.shown(file)).upload(file)
                self._sent[file] = state
        return len(files)


UPLOADS = Uploads()  # Those of the command that runs
