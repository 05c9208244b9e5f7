"""The hosts of a job, each with its own recording: its trace, its manifest, its samples."""

from dataclasses import dataclass, replace
from pathlib import Path

from tfdoctor.errors import InputError
from tfdoctor.recording import Recording
from tfdoctor.recording.files import TRACES


@dataclass(frozen=True, slots=True)
class HostRecording:
    """One host (or one worker: several may share a machine), and why it cannot be read if it cannot."""

    name: str
    found: Recording | InputError

    def opened(self) -> Recording:
        """Return its recording.

        Raises:
            InputError: it cannot be read.
        """
        if isinstance(self.found, InputError):
            raise self.found
        return self.found


def of(recording: Recording) -> tuple[HostRecording, ...]:
    """Return all hosts of a recording, the chief first; one for a recording of one, or of none."""
    if len(recording.workers) > 1:
        return tuple(map(_worker, recording.workers))
    if len(recording.traces) > 1:
        told = _teller(recording)
        return tuple(_of_trace(recording, trace, told=trace == told) for trace in recording.traces)
    return (HostRecording("", recording),)


def _worker(folder: Path) -> HostRecording:
    try:
        return HostRecording(folder.name, Recording.open(folder))
    except InputError as fault:
        return HostRecording(folder.name, fault)


def _teller(recording: Recording) -> Path:
    """Return the trace of the host that the manifest tells of: it is named after it, else the first."""
    name = recording.manifest.host.name if recording.manifest else ""
    named = [trace for trace in recording.traces if _name(trace) == name]
    return (named or list(recording.traces))[0]


def _of_trace(recording: Recording, trace: Path, *, told: bool) -> HostRecording:
    """Return the host of one trace among several; what was recorded beside them is of one host alone."""
    own = replace(recording, traces=(trace,))
    return HostRecording(
        _name(trace), own if told else Recording(None, None, (trace,), None, (), ())
    )


def _name(trace: Path) -> str:
    return trace.name.removesuffix(TRACES.removeprefix("*"))
