"""RAPL against folders as Linux shows them below /sys/class/powercap."""

import os
from pathlib import Path

import pytest

from tfdoctor.capture.sampler.rapl import RaplSampler
from tfdoctor.capture.sampler.unavailable import NoDevice


def zone(root: Path, folder: str, name: str, energy: int = 1_000_000, most: int = 5_000_000) -> Path:
    path = root / folder
    path.mkdir(parents=True)
    for file, value in {"name": name, "energy_uj": energy, "max_energy_range_uj": most}.items():
        (path / file).write_text(f"{value}\n")
    return path


def counted(sampler: RaplSampler) -> dict[str, float]:
    sampler.read_at = -float("inf")  # the next second
    return {package["name"]: package["energy_j"] for package in sampler.read()["package"]}


def test_each_package_counts_from_the_start(tmp_path: Path) -> None:
    packages = [zone(tmp_path, f"intel-rapl:{n}", f"package-{n}", 2_000_000) for n in range(2)]
    sampler = RaplSampler(tmp_path)
    sampler.start(1)
    (packages[1] / "energy_uj").write_text("2500000\n")
    assert counted(sampler) == {"package-0": 0.0, "package-1": 0.5}
    assert sampler.read() == {}  # too early


def test_a_counter_wraps_around(tmp_path: Path) -> None:
    package = zone(tmp_path, "intel-rapl:0", "package-0", 4_900_000)
    sampler = RaplSampler(tmp_path)
    sampler.start(1)
    (package / "energy_uj").write_text("400000\n")
    assert counted(sampler) == {"package-0": 0.5}
    (package / "energy_uj").write_text("900000\n")
    assert counted(sampler) == {"package-0": 1.0}


def test_parts_of_a_package_and_the_platform_are_not_added(tmp_path: Path) -> None:
    """Trap: cores and memory are within the package, and psys contains it."""
    zone(tmp_path, "intel-rapl", "")
    zone(tmp_path, "intel-rapl:0", "package-0")
    zone(tmp_path, "intel-rapl:0:0", "core")
    zone(tmp_path, "intel-rapl:0:1", "dram")
    zone(tmp_path, "intel-rapl:1", "psys")
    zone(tmp_path, "intel-rapl-mmio:0", "package-0")
    sampler = RaplSampler(tmp_path)
    sampler.start(1)
    assert list(counted(sampler)) == ["package-0"]


def test_a_machine_without_counters_lacks_nothing(tmp_path: Path) -> None:
    with pytest.raises(NoDevice, match="no energy counter"):
        RaplSampler(tmp_path).start(1)
    with pytest.raises(NoDevice, match="no energy counter"):
        RaplSampler(tmp_path / "absent").start(1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_counters_for_root_alone_are_no_fault(tmp_path: Path) -> None:
    package = zone(tmp_path, "intel-rapl:0", "package-0")
    (package / "energy_uj").chmod(0o200)
    with pytest.raises(NoDevice, match="only root"):
        RaplSampler(tmp_path).start(1)
