"""Samples TPUs: by the metrics that their runtime serves during use, and by libtpu's SDK."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from tfdoctor import own_python
from tfdoctor.capture.interpreter import asked
from tfdoctor.capture.sampler import NoDevice, Sampler, SamplerUnavailable
from tfdoctor.capture.sampler.devices import DEVICES, environment_of, tpu_chips

if TYPE_CHECKING:
    from tfdoctor.capture.sampler.tpu_runtime import Runtime

PORT = "8431"
PORTS = "TPU_RUNTIME_METRICS_PORTS"  # One port for each process that uses TPUs, separated by commas
MOST_PORTS = 64  # A machine has at most 8 chips; a longer list is no list of ports

FAILURES = 20  # Requests before we give up: the service exists only while a process uses the TPU

ASK = """
import json, sys, time
from libtpu.sdk import tpumonitoring
while True:
    data = tpumonitoring.get_metric("tensorcore_util").data()
    print(json.dumps([float(value) for value in data]), flush=True)
    time.sleep(1)
"""
FIND_LIBTPU = "import importlib.util, sys; sys.exit(importlib.util.find_spec('libtpu') is None)"

SILENT_S = 10.0  # Limit for an answer; without a TPU it took 120 s


class _OfTpus(Sampler):
    def __init__(self, devices: Path = DEVICES) -> None:
        self.devices = devices

    def start(self, pid: int) -> None:  # noqa: ARG002  # of those that sample
        """Search for chips.

        Raises:
            NoDevice: there are none.
        """
        if not tpu_chips(self.devices):
            raise NoDevice("this machine has no TPU")


class TpuSampler(_OfTpus):
    """Samples the duty cycle and the memory of the TPUs that processes of the run use on this machine."""

    name = "tpu"
    every_s = 1.0
    runtimes: "tuple[Runtime, ...]" = ()
    answered = False

    def start(self, pid: int) -> None:
        """Search for chips and for the ports of their runtime."""
        super().start(pid)
        given = environment_of(pid).get(PORTS, "").split(",")
        ports = [port.strip() for port in given if port.strip().isdecimal()][:MOST_PORTS] or [PORT]
        # gRPC takes a tenth of a second to load: import it only on a machine with TPUs.
        from tfdoctor.capture.sampler.tpu_runtime import Runtime  # noqa: PLC0415

        self.runtimes = tuple(map(Runtime, ports))

    def read(self) -> dict[str, Any]:
        """Return one sample of every device, or nothing without an answer."""
        rows = [
            {"process": number, "device": device, **values}
            for number, runtime in enumerate(self.runtimes)
            if runtime.failures < FAILURES
            for device, values in sorted(runtime.read().items())
        ]
        self.answered = self.answered or bool(rows)
        return {"tpu": rows} if rows else {}

    def stop(self) -> str:
        """Close the connections; return which ports did not answer, or ""."""
        for runtime in self.runtimes:
            runtime.channel.close()
        silent = [f"port {r.port} ({r.error})" for r in self.runtimes if r.error]
        return "" if not silent or self.answered else f"the TPU runtime returned no metrics: {', '.join(silent)}"


class TpuSdkSampler(_OfTpus):
    """Samples the percent of time in which each TensorCore's matrix unit works.

    libtpu is loaded only on a machine with TPUs, only by the run's Python in a child process, and only while
    that answers: without a TPU it waits minutes for a server that does not exist, and it may crash.
    """

    name = "tpu-sdk"
    child: subprocess.Popen[bytes] | None = None
    answered_at = 0.0
    partial_line = b""

    def start(self, pid: int) -> None:
        """Start the child, if this machine has a TPU and the run's Python has libtpu."""
        super().start(pid)
        try:
            python = psutil.Process(pid).cmdline()[0]
        except (psutil.Error, IndexError) as error:
            raise SamplerUnavailable("the run ended before it was checked") from error
        if asked(python, FIND_LIBTPU).returncode:
            raise SamplerUnavailable("the run's Python has no libtpu")
        self.child = subprocess.Popen(  # noqa: S603  # the run's own interpreter
            [python, "-c", ASK],
            env={**own_python.users(os.environ), "TPU_SKIP_MDS_QUERY": "1"},
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
            self.stop()
            raise ChildProcessError(f"libtpu's SDK ended with exit code {code}")
        if time.monotonic() - self.answered_at > SILENT_S:
            self.stop()
            raise TimeoutError(f"libtpu's SDK did not answer for {SILENT_S:.0f} s")
        return {}

    def stop(self) -> str:
        """End the child that reads the TPU."""
        if self.child is not None:
            self.child.kill()
            self.child.communicate()
            self.child = None
        return ""
