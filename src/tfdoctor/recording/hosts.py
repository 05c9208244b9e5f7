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
    if len(recording.traces) <= 1:
        return (HostRecording("", recording),)
    names = [trace.name.removesuffix(TRACES.removeprefix("*")) for trace in recording.traces]
    # The manifest, the program and the samples are of one host: the one of the manifest's name, else the first.
    name = recording.manifest.host.name if recording.manifest else ""
    described = names.index(name) if name in names else 0
    alone = [Recording(None, None, (trace,), None, (), ()) for trace in recording.traces]
    alone[described] = replace(recording, traces=(recording.traces[described],))
    return tuple(map(HostRecording, names, alone))


def _worker(folder: Path) -> HostRecording:
    try:
        return HostRecording(folder.name, Recording.open(folder))
    except InputError as fault:
        return HostRecording(folder.name, fault)
