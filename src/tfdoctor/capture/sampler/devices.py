"""Which accelerators a machine has, by its PCI bus, and which GPUs a run can use."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil

DEVICES = Path("/sys/bus/pci/devices")
NVIDIA, GOOGLE = "0x10de", "0x1ae0"  # PCI vendor numbers; Google's is that of every TPU (v2 to 7x)
GRAPHICS = "0x03"  # The start of the class of graphics devices
# The PCI device numbers of TPU v2 and v3, v4, v5e, v5p, v6e and 7x; Google makes other devices too.
CHIPS = frozenset(["0x0027", "0x005e", "0x0063", "0x0062", "0x006f", "0x0076"])


def has_nvidia_gpu(devices: Path = DEVICES) -> bool:
    """Say whether a graphics device of NVIDIA is on the PCI bus; also where no driver is loaded."""
    return any(kind.startswith(GRAPHICS) for kind in _entries("class", NVIDIA, devices))


def tpu_chips(devices: Path = DEVICES) -> int:
    """Return how many TPU chips this machine has."""
    return sum(number in CHIPS for number in _entries("device", GOOGLE, devices))


def _entries(name: str, vendor: str, devices: Path) -> Iterator[str]:
    """Yield an entry of each device of a vendor."""
    for folder in devices.iterdir() if devices.is_dir() else ():
        try:
            texts = [(folder / entry).read_text().strip() for entry in ("vendor", name)]
        except OSError:
            continue
        if texts[0] == vendor:
            yield texts[1]


def environment_of(pid: int) -> dict[str, str]:
    """Return a process's environment at its start; empty if we may not read it."""
    try:
        return psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return {}


def visible(variables: Mapping[str, str], uuids: Sequence[str]) -> list[bool | None]:
    """Return, for each GPU in NVML's order, whether CUDA shows it to the run; None is unknown.

    CUDA numbers GPUs from the fastest unless CUDA_DEVICE_ORDER=PCI_BUS_ID, so a number identifies a GPU only
    with that setting, or if there is one GPU. UUIDs may be abbreviated; the name of a MIG instance does not
    identify its GPU.
    """
    text = variables.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        return [True] * len(uuids)
    names = [name.strip() for name in text.split(",")]
    if names in ([""], ["-1"], ["NoDevFiles"]):
        return [False] * len(uuids)
    if all(name.startswith("GPU-") for name in names):
        return [any(uuid.startswith(name) for name in names) for uuid in uuids]
    numbers_certain = variables.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" or len(uuids) == 1
    if all(name.isdigit() for name in names) and numbers_certain:
        return [str(index) in names for index in range(len(uuids))]
    return [None] * len(uuids)
