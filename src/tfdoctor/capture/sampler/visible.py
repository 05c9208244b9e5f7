"""Which of the machine's GPUs a run can see: NVML lists all, in the order of the bus."""

from collections.abc import Mapping, Sequence
from pathlib import Path


def environment(pid: int) -> dict[str, str]:
    """Return a process's environment as it was started with; empty where that is nobody's business."""
    try:
        data = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (entry.decode("utf-8", "replace").partition("=") for entry in data.split(b"\0"))
    return {name: value for name, _, value in pairs if name}


def visible(given: Mapping[str, str], uuids: Sequence[str]) -> list[bool | None]:
    """Return, for each GPU in NVML's order, whether CUDA shows it to the run; None is not known.

    CUDA numbers GPUs from the fastest on unless CUDA_DEVICE_ORDER=PCI_BUS_ID, so a number names one for
    certain only then, or where there is one GPU. Names by UUID may be cut short; a MIG instance's name
    does not tell its GPU.
    """
    text = given.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        return [True] * len(uuids)
    names = [name.strip() for name in text.split(",")]
    if names in ([""], ["-1"], ["NoDevFiles"]):
        return [False] * len(uuids)
    if all(name.startswith("GPU-") for name in names):
        return [any(uuid.startswith(name) for name in names) for uuid in uuids]
    sure = given.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" or len(uuids) == 1
    if all(name.isdigit() for name in names) and sure:
        return [str(index) in names for index in range(len(uuids))]
    return [None] * len(uuids)
