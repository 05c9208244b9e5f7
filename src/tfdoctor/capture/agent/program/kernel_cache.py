"""What CUDA keeps of the kernels that it compiles: the folder of its cache, and what this process added to it."""

from __future__ import annotations

import itertools

from ..process.kept import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FOLDER = "~/.nv/ComputeCache"  # Where CUDA keeps them on Linux (CUDA C++ Programming Guide, environment variables)
MOST_FILES = 20_000  # Files of the cache that are looked at: training waits meanwhile


def describe(since: float, environment: Mapping[str, str] = os.environ) -> dict[str, object]:
    """Return whether the cache is off, its bytes, and how many files were written since a time in s, and how long.

    ``seconds`` is the time from ``since`` to the last of them.
    """
    if environment.get("CUDA_CACHE_DISABLE", "0") not in {"", "0"}:
        return {"disabled": True}
    folder = os.path.expanduser(environment.get("CUDA_CACHE_PATH") or FOLDER)
    files = list(itertools.islice(_files(folder), MOST_FILES))
    written = [at for _, at in files if at >= since]
    return {
        "disabled": False,
        "bytes": sum(size for size, _ in files),
        "limit": environment.get("CUDA_CACHE_MAXSIZE"),
        "written": len(written),
        "seconds": max(written) - since if written else 0.0,
    }


def _files(folder: str) -> Iterator[tuple[int, float]]:
    """Yield the bytes of each file below a folder, and when it was written, in s since 1970."""
    for inside, _, names in os.walk(folder):
        for name in names:
            try:
                state = os.stat(os.path.join(inside, name))
            except OSError:  # another process replaces it
                continue
            yield state.st_size, state.st_mtime
