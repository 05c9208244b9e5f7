"""Uploads what a command wrote for a URL: it writes to a folder on this machine first."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tfdoctor.errors import InputError, OutputError
from tfdoctor.humanize import counted
from tfdoctor.remote.filesystem import Action, opened


class Uploads:
    """The folders of this command whose files belong at URLs."""

    def __init__(self) -> None:
        self._urls: dict[Path, str] = {}

    def folder(self, url: str) -> Path:
        """Return a new folder whose files are uploaded to a URL when the command ends.

        Raises:
            InputError: the scheme of the URL is unknown, or needs a package that is not installed.
        """
        if opened(url).is_web:
            raise InputError(
                f"{url} can only be read: name a bucket or a folder for what is written."
            )
        folder = Path(tempfile.mkdtemp(prefix="tfdoctor-"))
        self._urls[folder] = url.rstrip("/")
        return folder

    def shown(self, path: Path) -> str:
        """Return a path as the user knows it: the URL, for a file that will be there."""
        for folder, url in self._urls.items():
            if path == folder or folder in path.parents:
                return "/".join((url, *path.relative_to(folder).parts))
        return str(path)

    def finish(self) -> Iterator[str]:
        """Upload all files, compare their sizes, and remove the folders; yield a sentence for each URL.

        Raises:
            OutputError: a file could not be uploaded; its folder stays.
        """
        while self._urls:
            folder, url = next(iter(self._urls.items()))
            del self._urls[folder]
            files = sorted(path for path in folder.rglob("*") if path.is_file())
            try:
                for file in files:
                    _upload(file, "/".join((url, *file.relative_to(folder).parts)))
            except InputError as error:
                raise OutputError(f"{error} What was to be uploaded stays in {folder}.") from error
            shutil.rmtree(folder)
            if files:
                yield f"tfdoctor: uploaded {counted(len(files), 'file')} to {url}"


def _upload(file: Path, url: str) -> None:
    place = opened(url)

    def put() -> None:
        if not place.is_bucket:  # there, it would make the bucket
            place.filesystem.makedirs(place.path.rpartition("/")[0], exist_ok=True)
        place.filesystem.put_file(str(file), place.path)
        place.filesystem.invalidate_cache()
        size = place.filesystem.size(place.path)
        if size is not None and size != file.stat().st_size:
            raise OSError(f"{size:,} of {file.stat().st_size:,} bytes arrived")

    place.attempt(Action.WRITE, put)


UPLOADS = Uploads()
"""Those of the command that runs."""
