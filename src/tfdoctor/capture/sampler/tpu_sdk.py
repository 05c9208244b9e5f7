"""The use of a TPU's matrix unit, by libtpu's own SDK, which must be kept at arm's length.

libtpu is loaded only where a TPU is, only in a child process of the run's own Python, and only for as
long as that answers: off a TPU it waits for minutes for a server that is not there, and it may crash.
"""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil

from tfdoctor.capture.sampler.tpu import DEVICES, chips
from tfdoctor.capture.sampler.unavailable import SamplerUnavailable

ASK = """
import json, sys, time
from libtpu.sdk import tpumonitoring
while True:
    data = tpumonitoring.get_metric("tensorcore_util").data()
    print(json.dumps([float(value) for value in data]), flush=True)
    time.sleep(1)
"""
KNOWN = "import importlib.util, sys; sys.exit(importlib.util.find_spec('libtpu') is None)"

START_S, SILENT_S = 20.0, 10.0
"""How long Python may take to look for libtpu, and how long an answer may take; off a TPU it took 120 s."""


class TpuSdkSampler:
    """The share of time in which each TensorCore's matrix unit works, in percent."""

    name = "tpu-sdk"

    def __init__(self, devices: Path = DEVICES) -> None:
        self.devices = devices
        self.child: subprocess.Popen[bytes] | None = None
        self.heard = 0.0
        self.rest = b""

    def start(self, pid: int) -> None:
        """Start the child, if this machine has a TPU and the run's Python has libtpu."""
        if not chips(self.devices):
            raise SamplerUnavailable("this machine has no TPU")
        try:
            python = psutil.Process(pid).cmdline()[0]
        except (psutil.Error, IndexError) as error:
            raise SamplerUnavailable("the run ended before it was checked") from error
        environment = {**os.environ, "TPU_SKIP_MDS_QUERY": "1"}
        known = subprocess.run(  # noqa: S603  # the run's own interpreter
            [python, "-c", KNOWN],
            timeout=START_S,
            check=False,
            capture_output=True,
            env=environment,
        )
        if known.returncode:
            raise SamplerUnavailable("the run's Python has no libtpu")
        self.child = subprocess.Popen(  # noqa: S603  # same
            [python, "-c", ASK],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is meant for the run
        )
        if self.child.stdout is not None:
            os.set_blocking(self.child.stdout.fileno(), False)
        self.heard = time.monotonic()

    def read(self) -> dict[str, Any]:
        """Return the newest answer; nothing when there is none yet.

        Raises:
            TimeoutError: it has been silent for too long, and was killed.
            ChildProcessError: it ended.
        """
        if self.child is None or self.child.stdout is None:
            return {}
        lines = (self.rest + (self.child.stdout.read() or b"")).split(b"\n")
        self.rest = lines.pop()
        if lines:
            self.heard = time.monotonic()
            return {"tpu_matrix_unit_pct": json.loads(lines[-1])}
        if (code := self.child.poll()) is not None:
            self._kill()
            raise ChildProcessError(f"libtpu's SDK ended with exit code {code}")
        if time.monotonic() - self.heard > SILENT_S:
            self._kill()
            raise TimeoutError(f"libtpu's SDK did not answer for {SILENT_S:.0f} s")
        return {}

    def _kill(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child.communicate()
            self.child = None

    def stop(self) -> str:
        """End the child."""
        self._kill()
        return ""
