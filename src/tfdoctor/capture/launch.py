"""Runs the user's script as without tfdoctor, with the agent inside and samplers in this process."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from tfdoctor.capture import background, manifest, run_times
from tfdoctor.capture.agent.process.rank import unreadable
from tfdoctor.capture.assemble import assemble
from tfdoctor.capture.environment import PLAN, environment
from tfdoctor.capture.folder import Folder, claim
from tfdoctor.capture.interpreter import notice
from tfdoctor.capture.plan import Kind, Plan
from tfdoctor.capture.progress import Title, fresh_line
from tfdoctor.capture.result_line import is_poor, sentence
from tfdoctor.capture.run_times import Moment
from tfdoctor.capture.sampler import Sampler, SamplingThread
from tfdoctor.capture.signals import Forwarder, forwarded
from tfdoctor.capture.written_files import written_since
from tfdoctor.recording import MANIFEST, SAMPLES, Recording, folders
from tfdoctor.recording.manifest import Manifest
from tfdoctor.remote.uploads import UPLOADS
from tfdoctor.terms.errors import CaptureError, LostRecordingError, OutputError
from tfdoctor.terms.replacement import unwritten


@dataclass(frozen=True, slots=True)
class Outcome:
    """A recording and the exit code of the script, which becomes that of tfdoctor."""

    recording: Recording
    exit_code: int


def profile(plan: Plan, *, stderr: TextIO | None = None) -> Outcome:
    """Run the script of the plan and record it.

    Raises:
        CaptureError: the script cannot be started; nothing was created.
        OutputError: the recording cannot be written where it should be; nothing was run.
        LostRecordingError: the script has run, and its recording can no longer be written.
    """
    stderr = stderr or sys.stderr
    plan.check()
    command = plan.command()
    folder = claim(plan)
    state = manifest.begin(plan, command, folder.worker)
    _begin(folder, state)
    samples = SamplingThread(folder.out / SAMPLES, plan.sample_every_ms, _samplers(plan))
    variables = environment(plan, folder.processes)
    for name in unreadable(os.environ) if plan.out and not plan.quiet else ():
        print(f"tfdoctor: note: {name} is not what a launcher sets, and is ignored", file=stderr)
    chosen = plan.python is None and plan.kind is not Kind.COMMAND
    if chosen and not plan.quiet and (said := notice(command[0])):
        print(f"tfdoctor: {said}", file=stderr)
    with forwarded() as forwarder:
        with Title(folder.processes, stderr, quiet=plan.quiet, traces=plan.trace):
            returncode, state = _run(command, variables, samples, forwarder, folder, state)
        done = _record(folder, state, returncode, samples, variables[PLAN])
    recording = Recording.open(folder.out)
    recorded = recording.run is not None
    if not plan.quiet or is_poor(done, recorded=recorded):
        fresh_line(stderr)
        text = sentence(done, recorded=recorded)
        print(f"tfdoctor: {text} in {UPLOADS.shown(folder.out)}", file=stderr)
    return Outcome(recording, manifest.exit_code(returncode))


def _begin(folder: Folder, state: Manifest) -> None:
    """Write the manifest of a run that is about to start.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        manifest.write(folder.out, state)
    except OSError as error:
        folder.drop()
        raise OutputError(unwritten(folder.out, error)) from error


def _samplers(plan: Plan) -> list[Sampler]:
    """Return the samplers; without sampling none is imported."""
    if not plan.sample_every_ms:
        return []
    from tfdoctor.capture.sampler.all_samplers import all_samplers  # noqa: PLC0415 - only when needed

    return all_samplers()


def _run(
    command: list[str],
    variables: Mapping[str, str],
    samples: SamplingThread,
    forwarder: Forwarder,
    folder: Folder,
    state: Manifest,
) -> tuple[int, Manifest]:
    """Run the script in our terminal and process group; return its return code, and the manifest with its times."""
    since = Moment.now()
    try:
        child = subprocess.Popen(command, env=variables)  # noqa: S603  # the user's script
    except OSError as error:
        (folder.out / MANIFEST).unlink()
        folder.drop()
        raise CaptureError(f"{command[0]} could not be started: {error.strerror}.") from error
    forwarder.started(child.pid)
    samples.start(child.pid)
    times = run_times.begun(since, child.pid)
    with contextlib.suppress(OSError):  # a full disk: the end of the run says so
        manifest.write(folder.out, replace(state, times=times))
    returncode = child.returncode = forwarder.wait(child.pid)
    return returncode, replace(state, times=run_times.ended(times, since, Moment.now()))


def _record(folder: Folder, state: Manifest, returncode: int, samples: SamplingThread, plan: str) -> Manifest:
    """Write the recording of the ended run; return its manifest."""
    try:
        recorded = folders.processes(folder.out)
        pid = state.times.pid if state.times else None
        state = replace(state, background=background.going_on(PLAN, plan, recorded, pid))
        ended = manifest.end(state, returncode, samples.stop(), recorded)
        began_ns = state.clock[0].unix_ns
        written = written_since(Path(state.cwd), began_ns, folder.shared or folder.out)
        return assemble(folder, replace(ended, written=written), recorded)
    except OSError as error:
        code = manifest.exit_code(returncode)
        raise LostRecordingError(
            unwritten(folder.out, error, f"make room, then run `tfdoctor report {folder.out}`"), code
        ) from error
