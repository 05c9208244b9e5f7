"""Diffs: the user's that are tried, changes of one file merged, and what proved to help as one diff."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tfdoctor.edits.patch import FileChange, unified
from tfdoctor.edits.source import within_repository
from tfdoctor.recording import Recording
from tfdoctor.source_code.splice import Declined
from tfdoctor.terms.errors import InputError
from tfdoctor.trial.program import Texts, Variant


def must_be_diff(patch: Path) -> bytes:
    """Return the content of a diff.

    Raises:
        InputError: the file cannot be read, or is no diff.
    """
    try:
        data = patch.read_bytes()
    except OSError as error:
        raise InputError(f"{patch} cannot be read ({error.strerror}): check the path of the patch.") from error
    if not HUNK.search(data):
        raise InputError(f"{patch} is no diff: make it with `git diff --relative` in the folder of the run.")
    return data


HUNK = re.compile(rb"^(?:@@ |diff --git |GIT binary patch)", re.MULTILINE)  # What every diff has


def of_patch(patch: Path, folder: Path) -> Variant:
    """Return the variant of a diff, as `git apply` would make it in the program's folder.

    Raises:
        InputError: the file is no diff that applies there.
    """
    data = must_be_diff(patch)
    if shutil.which("git") is None:
        raise InputError("--patch needs git, which applies the patch to copies: install it.")
    with tempfile.TemporaryDirectory(prefix="tfdoctor-patch-") as temporary:
        root = Path(temporary)
        apply = partial(_git_apply, data, root, f"{patch} does not apply in {folder}")
        names = _touched(patch, apply)
        for name in names:
            if (folder / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(folder / name, root / name)
        apply()
        after = {name: (root / name).read_bytes() for name in names}
    if all((folder / name).read_bytes() == text for name, text in after.items()):
        raise InputError(f"{patch} changes the text of no file: try a patch that does.")
    return Variant(name=patch.name, files={(folder / name).resolve(): after[name] for name in names}, patched=True)


def _git_apply(data: bytes, root: Path, refused: str, *options: str) -> bytes:
    """Let git apply a diff in a folder that is in no repository, or tell of it; return what it prints."""
    done = subprocess.run(  # noqa: S603 - git, with options of ours
        ["git", "apply", *options, "-"],  # noqa: S607 - the git of the user's PATH
        input=data,
        cwd=root,
        env={
            "GIT_CEILING_DIRECTORIES": str(root.parent),
            "LC_ALL": "C",
            "PATH": os.environ.get("PATH", os.defpath),
        },
        capture_output=True,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        errors = [line for line in lines if line.startswith("error: ")] or lines
        why = errors[0] if errors else "git gives no reason"
        raise InputError(f"{refused} ({why}): make it with `git diff --relative` in the folder of the run.")
    return done.stdout


TEXT_ONLY = (b" mode change ", b" rewrite ")  # What git says of a file of the same name


def _touched(patch: Path, apply: Callable[..., bytes]) -> list[str]:
    """Return the paths that a diff changes, without their first folder (a/ and b/)."""
    names = dict.fromkeys(
        os.fsdecode(entry.split(b"\t", 2)[2]) for entry in apply("--numstat", "-z").split(b"\0") if entry
    )
    summary = apply("--summary").splitlines()
    if not all(line.startswith(TEXT_ONLY) for line in summary):
        raise InputError(f"{patch} adds or deletes a file, or renames one: only changes of files can be tried.")
    outside = [name for name in names if Path(name).is_absolute() or ".." in Path(name).parts]
    if outside:
        raise InputError(
            f"{patch} names {outside[0]}, which is outside of the folder of the run: "
            "make it with `git diff --relative` there."
        )
    return list(names)


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


def kept_diff(kept: Sequence[Variant], before: Texts, recording: Recording) -> tuple[bytes, Path, tuple[Path, ...]]:
    """Return a diff of the last variant, which holds the changes of all, its folder, and the files outside of that.

    The folder is the one of the run or, where that does not hold the files, the one of the script, as in the patch
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
        FileChange(path.relative_to(folder).as_posix(), before[path], data)
        for path, data in files.items()
        if path.is_relative_to(folder)
    ]
    left_out = tuple(path for path in files if not path.is_relative_to(folder))
    return unified(changes, within_repository(folder)), folder, left_out
