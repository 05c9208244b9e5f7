"""Runs the user's script as without tfdoctor, with the agent inside and samplers in this process."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from tfdoctor.capture import manifest
from tfdoctor.capture.assemble import assemble
from tfdoctor.capture.environment import environment
from tfdoctor.capture.folder import Folder, claim
from tfdoctor.capture.interpreter import is_alone
from tfdoctor.capture.plan import Kind, Plan
from tfdoctor.capture.progress import Title, fresh_line
from tfdoctor.capture.sampler import Sampler, SamplingThread
from tfdoctor.capture.signals import Forwarder, forwarded
from tfdoctor.capture.written_files import written_since
from tfdoctor.errors import CaptureError, OutputError
from tfdoctor.recording import MANIFEST, SAMPLES, Recording, processes
from tfdoctor.recording.manifest import Manifest, TracedWindow


@dataclass(frozen=True, slots=True)
class Outcome:
    """A recording and the exit code of the script, which becomes that of tfdoctor."""

    recording: Recording
    exit_code: int


def profile(plan: Plan, *, stderr: TextIO | None = None) -> Outcome:
    """Run the script of the plan and record it.

    Raises:
        CaptureError: the script cannot be started; nothing was created.
        OutputError: the recording cannot be written where it should be.
    """
    stderr = stderr or sys.stderr
    plan.check()
    command = plan.command()
    folder = claim(plan)
    state = manifest.begin(plan, command, folder.worker)
    manifest.write(folder.out, state)
    samples = SamplingThread(folder.out / SAMPLES, plan.sample_every_ms, _samplers(plan))
    variables = environment(plan, folder.processes)
    if is_alone() and plan.python is None and plan.kind is not Kind.COMMAND and not plan.quiet:
        print(f"tfdoctor: runs it with {command[0]} (choose with --python)", file=stderr)
    with forwarded() as forwarder:
        with Title(folder.processes, stderr, quiet=plan.quiet):
            returncode = _run(command, variables, samples, forwarder, folder)
        done = _record(folder, state, returncode, samples)
    if _why_no_trace(done) or not plan.quiet:
        fresh_line(stderr)
        print(_sentence(folder.out, done), file=stderr)
    return Outcome(Recording.open(folder.out), manifest.exit_code(returncode))


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
) -> int:
    """Run the script in our terminal and process group; return its return code."""
    try:
        child = subprocess.Popen(command, env=variables)  # noqa: S603  # the user's script
    except OSError as error:
        (folder.out / MANIFEST).unlink()
        folder.drop()
        raise CaptureError(f"{command[0]} could not be started: {error.strerror}.") from error
    forwarder.started(child.send_signal)
    samples.start(child.pid)
    return child.wait()


def _record(folder: Folder, state: Manifest, returncode: int, samples: SamplingThread) -> Manifest:
    """Write the recording of the ended run; return its manifest."""
    try:
        recorded = processes.read(folder.out)
        ended = manifest.end(state, returncode, samples.stop(), recorded)
        began_ns = state.clock[0].unix_ns
        written = written_since(Path(state.cwd), began_ns, folder.shared or folder.out)
        return assemble(folder, replace(ended, written=written), recorded)
    except OSError as error:
        raise OutputError(
            f"{folder.out} can no longer be written ({error.strerror}); "
            f"the script ended with exit code {manifest.exit_code(returncode)}."
        ) from error


def _why_no_trace(done: Manifest) -> str:
    """Return why there is no trace, or "" if there is one."""
    if done.workers:
        return ""
    return done.trace_gap.why if done.trace_gap else ""


def _sentence(out: Path, done: Manifest) -> str:
    """Return the line that tfdoctor prints after the script's output."""
    why, window = _why_no_trace(done), done.window or TracedWindow()
    if why:
        return f"tfdoctor: no steps traced ({why}), recorded in {out}"
    if done.workers:
        return f"tfdoctor: {len(done.workers)} processes trained, recorded in {out}"
    if window.steps:
        steps = "1 step" if window.steps == 1 else f"{window.steps} steps"
        return f"tfdoctor: traced {steps}, recorded in {out}"
    duration_ns = (window.stopped_unix_ns or 0) - window.started_unix_ns
    return f"tfdoctor: traced {max(0, duration_ns) / 1e9:.1f} s, recorded in {out}"
