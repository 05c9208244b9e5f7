"""Samples the use of a TPU's matrix unit with libtpu's SDK, isolated in a child process.

libtpu is loaded only on a machine with TPUs, only by the run's Python in a child process, and only while
that answers: without a TPU it waits minutes for a server that does not exist, and it may crash.
"""

import json
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from tfdoctor import own_python
from tfdoctor.capture.sampler.pci import DEVICES
from tfdoctor.capture.sampler.tpu import chips
from tfdoctor.capture.sampler.unavailable import NoDevice, SamplerUnavailable

ASK = """
import json, sys, time
from libtpu.sdk import tpumonitoring
while True:
    data = tpumonitoring.get_metric("tensorcore_util").data()
    print(json.dumps([float(value) for value in data]), flush=True)
    time.sleep(1)
"""
FIND_LIBTPU = "import importlib.util, sys; sys.exit(importlib.util.find_spec('libtpu') is None)"

START_S, SILENT_S = 20.0, 10.0  # Limits for finding libtpu and for an answer; without a TPU an answer took 120 s


class TpuSdkSampler:
    """Samples the percent of time in which each TensorCore's matrix unit works."""

    name = "tpu-sdk"

    def __init__(self, devices: Path = DEVICES) -> None:
        self.devices = devices
        self.child: subprocess.Popen[bytes] | None = None
        self.answered_at = 0.0
        self.partial_line = b""

    def start(self, pid: int) -> None:
        """Start the child, if this machine has a TPU and the run's Python has libtpu."""
        if not chips(self.devices):
            raise NoDevice("this machine has no TPU")
        environment = {**own_python.users(os.environ), "TPU_SKIP_MDS_QUERY": "1"}
        self.child = subprocess.Popen(  # noqa: S603  # the run's own interpreter
            [_python_with_libtpu(pid, environment), "-c", ASK],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is meant for the run
        )
        if self.child.stdout is not None:
            os.set_blocking(self.child.stdout.fileno(), False)
        self.answered_at = time.monotonic()

    def read(self) -> dict[str, Any]:
        """Return the newest answer; nothing if there is no new one.

        Raises:
            TimeoutError: the child did not answer for SILENT_S and was killed.
            ChildProcessError: the child ended.
        """
        if self.child is None or self.child.stdout is None:
            return {}
        lines = (self.partial_line + (self.child.stdout.read() or b"")).split(b"\n")
        self.partial_line = lines.pop()
        if lines:
            self.answered_at = time.monotonic()
            return {"tpu_matrix_unit_pct": json.loads(lines[-1])}
        if (code := self.child.poll()) is not None:
            self._kill()
            raise ChildProcessError(f"libtpu's SDK ended with exit code {code}")
        if time.monotonic() - self.answered_at > SILENT_S:
            self._kill()
            raise TimeoutError(f"libtpu's SDK did not answer for {SILENT_S:.0f} s")
        return {}

    def _kill(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child.communicate()
            self.child = None

    def stop(self) -> str:
        """End the child that reads the TPU; there is nothing to report, so the status is empty."""
        self._kill()
        return ""


def _python_with_libtpu(pid: int, environment: Mapping[str, str]) -> str:
    """Return the run's Python; raise SamplerUnavailable if it has no libtpu."""
    try:
        python = psutil.Process(pid).cmdline()[0]
    except (psutil.Error, IndexError) as error:
        raise SamplerUnavailable("the run ended before it was checked") from error
    search = subprocess.run(  # noqa: S603  # the run's own interpreter
        [python, "-c", FIND_LIBTPU], timeout=START_S, check=False, capture_output=True, env=environment
    )
    if search.returncode:
        raise SamplerUnavailable("the run's Python has no libtpu")
    return python
