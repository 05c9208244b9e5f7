"""RAPL against folders as Linux shows them below /sys/class/powercap."""

from tests.capture.kit import *
from tfdoctor.capture.sampler import NoDevice
from tfdoctor.capture.sampler.rapl import RaplSampler


def zone(root: Path, folder: str, name: str, energy: int = 1_000_000) -> Path:
    path = root / folder
    path.mkdir()
    for file, value in {"name": name, "energy_uj": energy, "max_energy_range_uj": 5_000_000}.items():
        (path / file).write_text(f"{value}\n")
    return path


def test_packages_count_from_the_start_over_the_end_of_their_counters(tmp_path: Path) -> None:
    """Trap: cores and memory are within a package, and psys contains it."""
    packages = [zone(tmp_path, f"intel-rapl:{n}", f"package-{n}", 4_900_000) for n in range(2)]
    for folder, name in (("", ""), (":0:0", "core"), (":0:1", "dram"), (":2", "psys"), ("-mmio:0", "package-0")):
        zone(tmp_path, f"intel-rapl{folder}", name)
    sampler = RaplSampler(tmp_path)
    sampler.start(1)
    for energy, joules in ((4_900_000, 0.0), (400_000, 0.5), (900_000, 1.0)):
        (packages[1] / "energy_uj").write_text(f"{energy}\n")
        counted = [(package["name"], package["energy_j"]) for package in sampler.read()["package"]]
        assert counted == [("package-0", 0.0), ("package-1", joules)]


def test_a_machine_without_counters_lacks_nothing(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(NoDevice, match="no energy counter"):
            RaplSampler(folder).start(1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_counters_for_root_alone_are_no_fault(tmp_path: Path) -> None:
    (zone(tmp_path, "intel-rapl:0", "package-0") / "energy_uj").chmod(0o200)
    with pytest.raises(NoDevice, match="only root"):
        RaplSampler(tmp_path).start(1)
