"""Samples the energy counters of the CPU's packages (RAPL), which Linux shows below /sys/class/powercap.

A package's counter is `intel-rapl:N/energy_uj`, on AMD's processors too. It wraps around at `max_energy_range_uj`.
Domains within a package (`intel-rapl:N:M`) are parts of its count, and `psys` is a whole platform that contains
packages, so neither is added. Linux lets only root read the counters since 5.10 (CVE-2020-8694).
Source: https://docs.kernel.org/power/powercap/powercap.html
"""

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfdoctor.capture.sampler.unavailable import NoDevice

ZONES = Path("/sys/class/powercap")

ZONE = re.compile(r"intel-rapl:\d+")

PACKAGE = "package-"  # How the names of packages begin: package-0
# Between readings: the energy of a second is known to a thousandth, as the counter changes each millisecond.
PERIOD_S = 1.0

J_PER_UJ = 1e-6


@dataclass(slots=True)
class Package:
    """One package of the CPU, and what its counter has shown so far, in microjoules."""

    name: str
    counter: Path
    range_uj: int
    last_uj: int
    counted_uj: int = 0

    @classmethod
    def of(cls, zone: Path) -> "Package":
        """Begin to count.

        Raises:
            OSError: the counter cannot be read.
        """
        counter = zone / "energy_uj"
        range_uj = int((zone / "max_energy_range_uj").read_text("ascii"))
        return cls(_name(zone), counter, range_uj, int(counter.read_text("ascii")))

    def energy_j(self) -> float:
        """Return the energy in joules since counting began."""
        now = int(self.counter.read_text("ascii"))
        passed = now - self.last_uj
        self.counted_uj += passed if passed >= 0 else passed + self.range_uj
        self.last_uj = now
        return self.counted_uj * J_PER_UJ


class RaplSampler:
    """Reads the counters of all packages; without one that it may read, there is nothing to sample."""

    name = "rapl"

    def __init__(self, zones: Path = ZONES) -> None:
        self.zones = zones
        self.packages: list[Package] = []
        self.read_at = -float("inf")

    def start(self, pid: int) -> None:  # noqa: ARG002  # counters are of the machine
        """Find the packages.

        Raises:
            NoDevice: there are none, or their counters are for root alone: most users need no energy.
        """
        zones = [zone for zone in sorted(self.zones.glob("*")) if ZONE.fullmatch(zone.name)]
        packages = [zone for zone in zones if _name(zone).startswith(PACKAGE)]
        if not packages:
            raise NoDevice("this machine shows no energy counter of its CPU")
        try:
            self.packages = [Package.of(zone) for zone in packages]
        except PermissionError as error:
            raise NoDevice("only root may read the energy counters of the CPU") from error

    def read(self) -> dict[str, Any]:
        """Return the energy of each package, or nothing if the last reading is more recent than PERIOD_S."""
        now = time.monotonic()
        if now - self.read_at < PERIOD_S - 0.001:  # ticks vary by less than a millisecond
            return {}
        self.read_at = now
        return {
            "package": [
                {"name": package.name, "energy_j": round(package.energy_j(), 6)} for package in self.packages
            ]
        }

    def stop(self) -> str:
        """Do nothing: no resource is held."""
        return ""


def _name(zone: Path) -> str:
    """Return the name of a zone: package-0; "" where it has none."""
    try:
        return (zone / "name").read_text("ascii").strip()
    except OSError:
        return ""
