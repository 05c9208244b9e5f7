"""The hosts of a job, each with its own recording: trace, manifest and samples."""

from dataclasses import replace

from tfdoctor.recording import Recording
from tfdoctor.recording.files import TRACES
from tfdoctor.terms.errors import InputError

# The name of a host (or of a worker: several may share a machine), and its recording or the error from reading it.
Host = tuple[str, Recording | InputError]


def of(recording: Recording) -> list[Host]:
    """Return all hosts of a recording, the chief first; at least one."""
    hosts: list[Host] = []
    for folder in recording.workers if len(recording.workers) > 1 else ():
        try:
            hosts.append((folder.name, Recording.open(folder)))
        except InputError as fault:
            hosts.append((folder.name, fault))
    if hosts or len(recording.traces) <= 1:
        return hosts or [("", recording)]
    names = [trace.name.removesuffix(TRACES.removeprefix("*")) for trace in recording.traces]
    # The manifest, the program and the samples are of one host: the one of the manifest's name, else the first.
    name = recording.manifest.host.name if recording.manifest else ""
    described = names.index(name) if name in names else 0
    alone = [Recording(None, None, (trace,), None, (), ()) for trace in recording.traces]
    alone[described] = replace(recording, traces=(recording.traces[described],))
    return list(zip(names, alone, strict=True))
