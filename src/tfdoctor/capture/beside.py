"""Samples beside a recording from Python: `python -m tfdoctor.capture.beside PID FILE MS`, and who starts it.

A thread would compete with the training for its interpreter. The process is no child of the run's, whose
processor time is that of the run and its children, and whose own `os.wait()` would find it; it ends with the
run, and Ctrl-C does not reach it.
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

from tfdoctor.recording.manifest import Sampling
from tfdoctor.recording.typed import Misfit, read

LOOK_S = 1.0
"""How often to see whether the run is still there, should nobody say that it is over."""

PATIENCE_S = 10.0
"""How long a sampler may take to end: a driver may hang."""


NO_CHILD = "import os, sys; os.fork() or os.execv(sys.argv[1], sys.argv[1:])"


class Beside:
    """The samples of this process, taken by another one."""

    def __init__(self, path: Path, period_ms: int) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.why = ""
        if not period_ms:
            return
        python, here = sys.executable, str(os.getpid())
        words = [python, "-P", "-m", "tfdoctor.capture.beside", here, str(path), str(period_ms)]
        try:
            self.process = subprocess.Popen(  # noqa: S603  # our own
                [python, "-I", "-S", "-c", NO_CHILD, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
            self.process.wait()
        except OSError as error:
            self.why = f"the samplers could not be started: {error}"

    def stop(self) -> tuple[Sampling, ...]:
        """End; return what became of each sampler. `why` says why there is nothing."""
        if self.process is None:
            return ()
        try:
            said, _ = self.process.communicate(timeout=2 * PATIENCE_S)
            return tuple(read(Sampling, line, []) for line in json.loads(said))
        except (OSError, ValueError, TypeError, Misfit, subprocess.TimeoutExpired) as error:
            self.why = f"the samplers did not stop cleanly: {type(error).__name__}"
            return ()


def main(pid: int, path: Path, period_ms: int) -> None:
    """Sample a process until our standard input ends, or the process does."""
    from tfdoctor.capture.sampler import SamplingThread  # noqa: PLC0415 - only the process that samples
    from tfdoctor.capture.sampler.every import every  # noqa: PLC0415 - same

    samples = SamplingThread(path, period_ms, every())
    with contextlib.suppress(psutil.NoSuchProcess):
        run = psutil.Process(pid)
        samples.start(pid)
        while run.is_running() and not select.select([sys.stdin], [], [], LOOK_S)[0]:
            pass
    end = threading.Timer(PATIENCE_S, os._exit, [1])
    end.daemon = True
    end.start()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps([asdict(each) for each in samples.stop()]))
        sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
