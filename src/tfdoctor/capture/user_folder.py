"""The folder of the program that is recorded: its commit, who commits, and which of its files the run wrote."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from tfdoctor.recording.manifest import Revision, WrittenFiles

TIMEOUT_S = 5.0  # For one question to git: a large repository on a slow disk must not delay the run
# Variables in which GitHub, GitLab, Azure and Jenkins name the commit of a job, where its image has none.
OF_CI = ("GITHUB_SHA", "CI_COMMIT_SHA", "BUILD_SOURCEVERSION", "GIT_COMMIT")
HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")  # Of a commit, by SHA-1 or SHA-256

# Files that are looked at, some 0.3 s on a local disk; in a larger folder the answer is unknown.
MOST_ENTRIES = 50_000
NAMES = 20  # Names that are kept
NOT_SHOWN = frozenset((".git", "__pycache__"))  # Folders that programs keep for themselves


def revision(folder: Path, script: Path | None, environment: Mapping[str, str]) -> Revision | None:
    """Return the commit that is checked out in a folder; None where neither git nor the CI knows it.

    A script that git does not track is a change of the commit.
    """
    told = _git(folder, "log", "-1", "--no-show-signature", "--format=%H %ct")
    commit, _, seconds = (told or "").strip().partition(" ")
    if not HASH.fullmatch(commit) or not seconds.isdecimal():
        of_job = (environment.get(name, "").lower() for name in OF_CI)
        known = next(filter(HASH.fullmatch, of_job), None)
        return Revision(known) if known else None
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    unknown = script is not None and not _git(folder, "ls-files", "--", str(script))
    changed = True if unknown else None if changes is None else bool(changes)
    return Revision(commit, int(seconds) * 1_000_000_000, changed)


def user(folder: Path) -> str:
    """Return the name by which git signs the user's commits in a folder; "" without one."""
    return (_git(folder, "config", "user.name") or "").strip()


def _git(folder: Path, *question: str) -> str | None:
    """Return git's answer about the repository of a folder; None where there is none.

    git takes no lock, so that it never disturbs a command of the user's. Its whole path is given: to search for it,
    Python changes the filters of warnings, and the warnings of a script that records itself would be shown again.
    """
    git = shutil.which("git")
    if git is None:
        return None
    try:
        answer = subprocess.run(  # noqa: S603 - arguments of our own, and no shell
            [git, "-C", str(folder), *question],
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            check=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout


def written_since(folder: Path, unix_ns: int, recording: Path) -> WrittenFiles | None:
    """Return the files below a folder that changed since a moment, without those of the recording.

    A file counts by the time of its last change of any kind (``st_ctime_ns``), which no program can set. Links are
    not followed, and files that were removed do not show. None where there are too many files to look at.
    """
    names = []
    for number, path in enumerate(_files(folder, recording)):
        if number == MOST_ENTRIES:
            return None
        with suppress(OSError):  # removed meanwhile
            if path.lstat().st_ctime_ns >= unix_ns:
                names.append(str(path.relative_to(folder)))
    return WrittenFiles(len(names), tuple(sorted(names)[:NAMES]))


def _files(folder: Path, recording: Path) -> Iterator[Path]:
    """Yield the files below a folder, and links; those of a folder that cannot be read are left out."""
    for inside, folders, names in os.walk(folder):
        within = [Path(inside, name) for name in folders]
        yield from (*(Path(inside, name) for name in names), *filter(Path.is_symlink, within))
        folders[:] = [one.name for one in within if one.name not in NOT_SHOWN and one != recording]
