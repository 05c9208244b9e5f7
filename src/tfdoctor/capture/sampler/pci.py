"""Finds out from the PCI bus which accelerators a machine has; also where no driver is loaded."""

from pathlib import Path

DEVICES = Path("/sys/bus/pci/devices")
# The PCI vendor number of NVIDIA, and the start of the class of graphics devices.
NVIDIA, GRAPHICS = "0x10de", "0x03"


def has_nvidia_gpu(devices: Path = DEVICES) -> bool:
    """Say whether a graphics device of NVIDIA is on the PCI bus."""
    for folder in devices.iterdir() if devices.is_dir() else ():
        try:
            vendor, kind = ((folder / name).read_text().strip() for name in ("vendor", "class"))
        except OSError:
            continue
        if vendor == NVIDIA and kind.startswith(GRAPHICS):
            return True
    return False
