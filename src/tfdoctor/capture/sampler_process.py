"""Samples the machine during an in-process recording: `python -m tfdoctor.capture.sampler_process PID FILE MS`.

A thread in the run would compete with the training for the interpreter. The process is not a child of the
run: its CPU time would count as the run's, and the user's `os.wait()` would return it. It ends when the run
ends, and Ctrl-C does not reach it.
"""

import contextlib
import json
import os
import select
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path

import psutil

from tfdoctor import own_python
from tfdoctor.recording.manifest import Sampling
from tfdoctor.recording.typed import Misfit, read

CHECK_S = 1.0  # How often to check whether the run still exists, in case it ends without closing our input
PATIENCE_S = 10.0  # How long a sampler may take to stop: a driver may hang
# Forks and exits, so that the sampling process has another parent.
NO_CHILD = "import os, sys; os.fork() or os.execv(sys.argv[1], sys.argv[1:])"


class SamplerProcess:
    """The process that samples this one; `why` says why it does not."""

    def __init__(self, path: Path, period_ms: int) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.why = ""
        if not period_ms:
            return
        python, pid = sys.executable, str(os.getpid())
        module = "tfdoctor.capture.sampler_process"
        command = [python, "-P", "-m", module, pid, str(path), str(period_ms)]
        try:
            self.process = subprocess.Popen(  # noqa: S603  # our own
                [python, "-I", "-S", "-c", NO_CHILD, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=own_python.own(os.environ),
                start_new_session=True,
            )
            self.process.wait()
        except OSError as error:
            self.why = f"the samplers could not be started: {error}"

    def stop(self) -> tuple[Sampling, ...]:
        """Stop the samplers; return the status of each, or nothing if `why` says why."""
        if self.process is None:
            return ()
        try:
            output, _ = self.process.communicate(timeout=2 * PATIENCE_S)
            return tuple(read(Sampling, status, []) for status in json.loads(output))
        except (OSError, ValueError, TypeError, Misfit, subprocess.TimeoutExpired) as error:
            self.why = f"the samplers did not stop cleanly: {type(error).__name__}"
            return ()


def main(pid: int, path: Path, period_ms: int) -> None:
    """Sample a process until it ends or our standard input is closed."""
    from tfdoctor.capture.sampler import SamplingThread, all_samplers  # noqa: PLC0415 - only the process that samples

    samples = SamplingThread(path, period_ms, all_samplers())
    with contextlib.suppress(psutil.NoSuchProcess):
        run = psutil.Process(pid)
        samples.start(pid)
        while run.is_running() and not select.select([sys.stdin], [], [], CHECK_S)[0]:
            pass
    timeout = threading.Timer(PATIENCE_S, os._exit, [1])
    timeout.daemon = True
    timeout.start()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps([asdict(status) for status in samples.stop()]))
        sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
