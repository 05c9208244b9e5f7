"""Samples TPUs by the metrics that their runtime serves during use: duty cycle and memory."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdoctor.capture.sampler.pci import DEVICES
from tfdoctor.capture.sampler.unavailable import NoDevice
from tfdoctor.capture.sampler.visible import environment

if TYPE_CHECKING:
    from tfdoctor.capture.sampler.tpu_runtime import Runtime

GOOGLE = "0x1ae0"  # The PCI vendor number of every TPU (v2 to 7x)
# The PCI device numbers of TPU v2 and v3, v4, v5e, v5p, v6e and 7x; Google makes other devices too.
CHIPS = frozenset(["0x0027", "0x005e", "0x0063", "0x0062", "0x006f", "0x0076"])

PORT = "8431"
PORTS = "TPU_RUNTIME_METRICS_PORTS"  # One port for each process that uses TPUs, separated by commas
MOST_PORTS = 64  # A machine has at most 8 chips; a longer list is no list of ports

EVERY_S = 1.0

FAILURES = 20  # Requests before we give up: the service exists only while a process uses the TPU


def chips(devices: Path = DEVICES) -> int:
    """Return how many TPU chips this machine has."""
    return sum(
        _text(folder / "vendor") == GOOGLE and _text(folder / "device") in CHIPS
        for folder in (devices.iterdir() if devices.is_dir() else ())
    )


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


class TpuSampler:
    """Samples the TPUs that processes of the run use on this machine."""

    name = "tpu"

    def __init__(self, devices: Path = DEVICES) -> None:
        self.devices = devices
        self.runtimes: list[Runtime] = []
        self.last, self.answered = -EVERY_S, False

    def start(self, pid: int) -> None:
        """Search for chips and for the ports of their runtime."""
        if not chips(self.devices):
            raise NoDevice("this machine has no TPU")
        given = environment(pid).get(PORTS, "").split(",")
        ports = [port.strip() for port in given if port.strip().isdecimal()][:MOST_PORTS] or [PORT]
        # gRPC takes a tenth of a second to load: import it only on a machine with TPUs.
        from tfdoctor.capture.sampler.tpu_runtime import Runtime  # noqa: PLC0415

        self.runtimes = list(map(Runtime, ports))

    def read(self) -> dict[str, Any]:
        """Return one sample of every device, or nothing without an answer or within EVERY_S."""
        now = time.monotonic()
        if now - self.last < EVERY_S:
            return {}
        self.last = now
        rows = []
        for number, runtime in enumerate(self.runtimes):
            if runtime.failures < FAILURES:
                rows += [
                    {"process": number, "device": device, **values}
                    for device, values in sorted(runtime.read().items())
                ]
        self.answered = self.answered or bool(rows)
        return {"tpu": rows} if rows else {}

    def stop(self) -> str:
        """Close the connections; return which ports did not answer, or ""."""
        for runtime in self.runtimes:
            runtime.channel.close()
        silent = [f"port {r.port} ({r.error})" for r in self.runtimes if r.error]
        if not silent or self.answered:
            return ""
        return f"the TPU runtime returned no metrics: {', '.join(silent)}"
