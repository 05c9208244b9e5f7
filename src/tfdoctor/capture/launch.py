"""Runs the user's script as without tfdoctor, with the agent inside and samplers in this process."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from tfdoctor import own_python
from tfdoctor.capture import manifest
from tfdoctor.capture.agent.process.rank import unreadable
from tfdoctor.capture.folder import Folder, assemble, claim
from tfdoctor.capture.interpreter import notice
from tfdoctor.capture.manifest import Moment, times_begun, times_ended
from tfdoctor.capture.plan import PLAN, Kind, Plan, agent_environment, agent_plan
from tfdoctor.capture.progress import Title, fresh_line, is_poor, sentence
from tfdoctor.capture.sampler import SamplingThread, all_samplers
from tfdoctor.capture.signals import Forwarder, forwarded
from tfdoctor.capture.user_folder import written_since
from tfdoctor.recording import SAMPLES, Recording, folders
from tfdoctor.recording.folders import Process, reported
from tfdoctor.recording.manifest import Manifest
from tfdoctor.remote.uploads import UPLOADS
from tfdoctor.terms.errors import CaptureError, LostRecordingError, TfdoctorError
from tfdoctor.terms.record import Record
from tfdoctor.terms.replacement import unwritten, writing

GRACE_S = 1.0  # How long processes may take to end that end because the command has: managers, trackers, workers
POLL_S = 0.1


class Outcome(Record):
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
    samplers = all_samplers() if plan.sample_every_ms else []
    samples = SamplingThread(folder.out / SAMPLES, plan.sample_every_ms, samplers)
    settings, hidden = agent_plan(plan, folder.processes), plan.kind is not Kind.COMMAND
    variables = agent_environment(own_python.users(os.environ), settings, hidden=hidden)
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


def _run(
    command: list[str],
    variables: Mapping[str, str],
    samples: SamplingThread,
    forwarder: Forwarder,
    folder: Folder,
    state: Manifest,
) -> tuple[int, Manifest]:
    """Run the script in our terminal and process group; return its return code, and the manifest with its times."""
    try:
        with writing(folder.out):
            manifest.write(folder.out, state)
        since = Moment.now()
        try:
            child = subprocess.Popen(command, env=variables)  # noqa: S603  # the user's script
        except OSError as error:
            raise CaptureError(f"{command[0]} could not be started: {error.strerror}.") from error
    except TfdoctorError:
        folder.drop()
        raise
    forwarder.started(child.pid)
    samples.start(child.pid)
    times = times_begun(since, child.pid)
    with contextlib.suppress(OSError):  # a full disk: the end of the run says so
        manifest.write(folder.out, replace(state, times=times))
    returncode = child.returncode = forwarder.wait(child.pid)
    return returncode, replace(state, times=times_ended(times, since, Moment.now()))


def _record(folder: Folder, state: Manifest, returncode: int, samples: SamplingThread, plan: str) -> Manifest:
    """Write the recording of the ended run; return its manifest."""
    try:
        recorded = folders.processes(folder.out)
        state = replace(state, background=_background(plan, recorded, state.times.pid if state.times else None))
        ended = manifest.end(state, returncode, samples.stop(), recorded)
        written = written_since(Path(state.cwd), state.clock[0].unix_ns, folder.shared or folder.out)
        return assemble(folder, replace(ended, written=written), recorded)
    except OSError as error:
        code = manifest.exit_code(returncode)
        raise LostRecordingError(
            unwritten(folder.out, error, f"make room, then run `tfdoctor report {folder.out}`"), code
        ) from error


def _background(plan: str, recorded: Sequence[Process], pid: int | None) -> tuple[int, ...]:
    """Return the numbers of the processes that go on, where what they do is what the recording should be about.

    That is where no process has trained, or one that goes on has; `pid` is the command. We wait for them no more
    than a shell does. All processes of a run have its plan in their environment.
    """
    import psutil  # noqa: PLC0415 - takes 20 ms, which only the end of a run has

    from tfdoctor.capture.sampler.devices import environment_of  # noqa: PLC0415 - same

    until = time.monotonic() + GRACE_S
    while left := tuple(one for one in psutil.pids() if environment_of(one).get(PLAN) == plan):
        shown = reported(recorded, pid)
        if shown is not None and shown.trained and shown.state.pid not in left:
            return ()
        if time.monotonic() >= until:
            return left
        time.sleep(POLL_S)
    return ()
