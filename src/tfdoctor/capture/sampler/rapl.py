"""Samples the energy counters of the CPU's packages (RAPL), which Linux shows below /sys/class/powercap.

A package's counter is `intel-rapl:N/energy_uj`, on AMD's processors too. It wraps around at `max_energy_range_uj`.
Domains within a package (`intel-rapl:N:M`) are parts of its count, and `psys` is a whole platform that contains
packages, so neither is added. Linux lets only root read the counters since 5.10 (CVE-2020-8694).
Source: https://docs.kernel.org/power/powercap/powercap.html
"""

import re
from pathlib import Path
from typing import Any

from tfdoctor.capture.sampler import NoDevice, Sampler

ZONES = Path("/sys/class/powercap")
ZONE = re.compile(r"intel-rapl:\d+")
PACKAGE = "package-"  # How the names of packages begin: package-0
# Between readings: the energy of a second is known to a thousandth, as the counter changes each millisecond.
PERIOD_S = 1.0
J_PER_UJ = 1e-6


class RaplSampler(Sampler):
    """Reads the counters of all packages; without one that it may read, there is nothing to sample."""

    name = "rapl"
    every_s = PERIOD_S

    def __init__(self, zones: Path = ZONES) -> None:
        self.zones = zones
        # By package, in microjoules: what its counter showed at last, and what it has counted since the start.
        self.last_uj: dict[Path, int] = {}
        self.counted_uj: dict[Path, int] = {}

    def start(self, pid: int) -> None:  # noqa: ARG002  # counters are of the machine
        """Find the packages, and begin to count.

        Raises:
            NoDevice: there are none, or their counters are for root alone: most users need no energy.
        """
        zones = [zone for zone in sorted(self.zones.glob("*")) if ZONE.fullmatch(zone.name)]
        packages = [zone for zone in zones if _name(zone).startswith(PACKAGE)]
        if not packages:
            raise NoDevice("this machine shows no energy counter of its CPU")
        try:
            self.last_uj = {zone: _number(zone, "energy_uj") for zone in packages}
        except PermissionError as error:
            raise NoDevice("only root may read the energy counters of the CPU") from error
        self.counted_uj = dict.fromkeys(packages, 0)

    def read(self) -> dict[str, Any]:
        """Return the energy of each package since the start, in joules."""
        for zone, before in self.last_uj.items():
            self.last_uj[zone] = now = _number(zone, "energy_uj")
            self.counted_uj[zone] += (
                now - before if now >= before else now - before + _number(zone, "max_energy_range_uj")
            )
        counted = self.counted_uj.items()
        return {"package": [{"name": _name(zone), "energy_j": round(uj * J_PER_UJ, 6)} for zone, uj in counted]}


def _number(zone: Path, name: str) -> int:
    return int((zone / name).read_text("ascii"))


def _name(zone: Path) -> str:
    """Return the name of a zone: package-0; "" where it has none."""
    try:
        return (zone / "name").read_text("ascii").strip()
    except OSError:
        return ""
