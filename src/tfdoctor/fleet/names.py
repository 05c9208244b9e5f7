"""The names of runs: what a place, a command or a run folder says about the program and its time."""

import posixpath
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import PurePosixPath

from tfdoctor.recording import Manifest
from tfdoctor.recording.folders import RUN
from tfdoctor.recording.manifest import SCRIPT
from tfdoctor.stored.files import NAMES

# A folder that is named by a date or a number, and not by its program.
DATED = re.compile(r"(attempt|exp|experiment|run|trial|try|v|version)?[-_]?\d[\d_.:T-]*", re.IGNORECASE)
PARTS = 2  # Folders in the name of a job
NS_PER_S = 1e9
MS_PER_HOUR = 3_600_000.0


def title(place: str) -> str:
    """Return a short name of a recording: its folder, without those that TensorBoard adds."""
    parts = _folders(place)
    return parts[-1] if parts else place


def job(place: str, script: str) -> str:
    """Return the name of a job: its script, or the last folders of its place that are not named by a date."""
    if script:
        return script
    named = [part for part in _folders(place) if not DATED.fullmatch(part)]
    return "/".join(named[-PARTS:]) or place


def script(command: Sequence[str], module: str = "", cwd: str = "") -> str:
    """Return the folder and the name of the script of a command, or of its module; "" where none is known."""
    path = next((word for word in (module, *command) if word.endswith(SCRIPT)), "")
    if not path:
        return f"{posixpath.basename(cwd)}/{module}".lstrip("/") if module else ""
    path = posixpath.normpath(posixpath.join(cwd, path))
    return "/".join(filter(None, (posixpath.basename(posixpath.dirname(path)), posixpath.basename(path))))


def recorded(manifest: Manifest | None, traces: tuple[PurePosixPath, ...]) -> str:
    """Return when a run was recorded, in ISO 8601; "" if unknown.

    It is in UTC (Z), or in the machine's own time where only the run folder says it.
    """
    moment = manifest.recorded_unix_ns if manifest else 0
    if moment:
        return datetime.fromtimestamp(moment / NS_PER_S, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    runs = filter(None, (RUN.fullmatch(trace.parent.name) for trace in traces))
    return next(("{}-{}-{}T{}:{}:{}".format(*run.groups()) for run in runs), "")


def hours(manifest: Manifest | None, step_ms: float | None) -> float | None:
    """Return the hours of training of a run: all its steps, or from the first traced one to its end.

    None where the recording does not say, as those of other tools do not.
    """
    if manifest is None or step_ms is None or manifest.window is None:
        return None
    if manifest.steps.seen and manifest.steps.seen_all:
        return manifest.steps.seen * step_ms / MS_PER_HOUR
    ended = manifest.clock[-1].unix_ns if len(manifest.clock) > 1 else 0
    traced_ns = ended - manifest.window.started_unix_ns
    return traced_ns / NS_PER_S / 3600 if manifest.window.started_unix_ns and traced_ns > 0 else None


def _folders(place: str) -> list[str]:
    """Return the folders of a place by which users tell it from others."""
    _, _, path = place.rpartition("://")
    parts = list(PurePosixPath(path).parts)
    if parts and parts[-1].endswith((".pb", *NAMES)):
        parts = parts[:-1]
    if len(parts) > PARTS and parts[-2] == "profile":
        parts = parts[: -3 if parts[-3] == "plugins" else -2]
    return [part for part in parts if part != "/"]
