"""Two changes of one file, made together: a merge by lines, as `git merge` makes it."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from tfdoctor.edits.splice import Declined


def merged(base: bytes, one: bytes, other: bytes) -> bytes:
    """Return a text with the changes of both others.

    Raises:
        Declined: they change the same lines, or there is no git.
    """
    if one == other:
        return one
    if shutil.which("git") is None:
        raise Declined("they change the same file, and git, which merges them, is not installed")
    with tempfile.TemporaryDirectory(prefix="tfdoctor-merge-") as folder:
        paths = [Path(folder, name) for name in ("one", "base", "other")]
        for path, data in zip(paths, (one, base, other), strict=True):
            path.write_bytes(data)
        done = subprocess.run(  # noqa: S603 - the git of the user's PATH
            ["git", "merge-file", "-p", *map(str, paths)],  # noqa: S607 - same
            capture_output=True,
            check=False,
        )
    if done.returncode:
        raise Declined("they change the same lines")
    return done.stdout
