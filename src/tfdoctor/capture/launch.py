"""Runs the user's script as it would run by itself, with the guest inside and samplers beside."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from tfdoctor.capture import manifest
from tfdoctor.capture.plan import Plan
from tfdoctor.capture.sampler import Samples
from tfdoctor.capture.sampler.host import HostSampler
from tfdoctor.capture.sampler.nvml import NvmlSampler
from tfdoctor.errors import CaptureError, OutputError
from tfdoctor.recording import GUEST, SAMPLES, Recording

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Outcome:
    """A recording, and the exit code of the script: tfdoctor's own becomes the same."""

    recording: Recording
    exit_code: int


def profile(plan: Plan, *, stderr: TextIO | None = None) -> Outcome:
    """Run the script of the plan and record it.

    Raises:
        CaptureError: the script cannot be started; nothing was created.
        OutputError: the recording cannot be written where it should be.
    """
    plan.check_script()
    python = plan.interpreter()
    command = [python, plan.script, *plan.args]
    out = _folder(plan)
    state = manifest.begin(plan, python, command)
    manifest.write(out, state)
    samples = Samples(out / SAMPLES, plan.sample_every_ms, [HostSampler(), NvmlSampler()])
    returncode = _run(command, _environment(plan, out), samples)
    done = manifest.complete(out, state, returncode, samples.stop())
    try:
        manifest.write(out, done)
        (out / GUEST).unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(
            f"{out} can no longer be written ({error.strerror}); "
            f"the script itself ended with {manifest.exit_code(returncode)}."
        ) from error
    print(_sentence(out, done), file=stderr or sys.stderr)
    return Outcome(Recording.open(out), manifest.exit_code(returncode))


def _folder(plan: Plan) -> Path:
    """Create the recording's folder; a recording is never overwritten."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    out = plan.out or Path("runs", f"{Path(plan.script).stem}-{stamp}")
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise OutputError(f"{out} is not empty: choose another --out, or remove it first.")
        out.mkdir(parents=True, exist_ok=True)
        probe = out / GUEST
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OutputError(f"{out} cannot be written ({error.strerror}): choose --out.") from error
    return out.resolve()


def _environment(plan: Plan, out: Path) -> dict[str, str]:
    """Return the script's environment: the user's, and the way in for the guest."""
    before = os.environ.get("PYTHONPATH")
    guest = {
        "guest": str(HERE / "guest"),
        "out": str(out),
        "pythonpath": before,
        "steps": plan.steps,
        "warmup": plan.warmup,
        "stop_after": plan.stop_after,
    }
    paths = [str(HERE / "site"), *([before] if before else [])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TFDOCTOR_PLAN": json.dumps(guest)}


def _run(command: list[str], environment: dict[str, str], samples: Samples) -> int:
    """Run the script in our terminal and process group; return how it ended."""
    children: list[subprocess.Popen[bytes]] = []
    with _signals(children):
        try:
            child = subprocess.Popen(command, env=environment)  # noqa: S603  # the user's script
        except OSError as error:
            raise CaptureError(f"{command[0]} could not be started: {error.strerror}.") from error
        children.append(child)
        samples.start(child.pid)
        return child.wait()


@contextmanager
def _signals(children: list["subprocess.Popen[bytes]"]) -> Iterator[None]:
    """Leave Ctrl-C to the script, and pass on what was sent to us alone.

    Handlers, not SIG_IGN: the script would inherit that, and never see Ctrl-C.
    """

    def forward(number: int, _frame: object) -> None:
        for child in children:
            child.send_signal(number)

    def leave(_number: int, _frame: object) -> None:
        """The terminal has sent it to the script as well."""

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    wanted = {signal.SIGINT: leave, signal.SIGTERM: forward, signal.SIGHUP: forward}
    kept = {
        number: signal.signal(number, handler)
        for number, handler in wanted.items()
        if signal.getsignal(number) is not signal.SIG_IGN  # nohup: keep it ignored
    }
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _sentence(out: Path, done: dict[str, object]) -> str:
    """Return the one line that tfdoctor adds to what the script said."""
    window = done["window"]
    missing = done["missing"]
    if isinstance(window, dict) and window.get("steps"):
        steps = "1 step" if window["steps"] == 1 else f"{window['steps']} steps"
        return f"tfdoctor: traced {steps}, recorded in {out}"
    why = next((m["why"] for m in missing if m["what"] in ("trace", "steps")), "")  # type: ignore[attr-defined]
    return f"tfdoctor: no steps traced ({why}), recorded in {out}"
