"""The hosts of a job, each with its own recording: trace, manifest and samples."""

from dataclasses import replace
from pathlib import Path

from tfdoctor.recording import Recording
from tfdoctor.recording.files import TRACES
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.record import Record


class HostRecording(Record):
    """The recording of one host (or of one worker: several may share a machine), or the error from reading it."""

    name: str
    result: Recording | InputError

    def opened(self) -> Recording:
        """Return the host's recording.

        Raises:
            InputError: the recording cannot be read.
        """
        if isinstance(self.result, InputError):
            raise self.result
        return self.result


def of(recording: Recording) -> tuple[HostRecording, ...]:
    """Return all hosts of a recording, the chief first; at least one."""
    if len(recording.workers) > 1:
        return tuple(map(_worker, recording.workers))
    if len(recording.traces) > 1:
        described = _described(recording)
        return tuple(_of_trace(recording, trace, described=trace == described) for trace in recording.traces)
    return (HostRecording("", recording),)


def _worker(folder: Path) -> HostRecording:
    try:
        return HostRecording(folder.name, Recording.open(folder))
    except InputError as fault:
        return HostRecording(folder.name, fault)


def _described(recording: Recording) -> Path:
    """Return the trace of the host that the manifest describes: the one with its name, else the first."""
    name = recording.manifest.host.name if recording.manifest else ""
    named = [trace for trace in recording.traces if _name(trace) == name]
    return (named or list(recording.traces))[0]


def _of_trace(recording: Recording, trace: Path, *, described: bool) -> HostRecording:
    """Return the host of one trace among several; manifest, program and samples belong to one host."""
    own = replace(recording, traces=(trace,))
    return HostRecording(_name(trace), own if described else Recording(None, None, (trace,), None, (), ()))


def _name(trace: Path) -> str:
    return trace.name.removesuffix(TRACES.removeprefix("*"))
