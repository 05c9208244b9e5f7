"""Finds out which GPUs a run can use: NVML lists all, in the order of the PCI bus."""

from collections.abc import Mapping, Sequence
from pathlib import Path


def environment(pid: int) -> dict[str, str]:
    """Return a process's environment at its start; empty if we may not read it."""
    try:
        data = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (entry.decode("utf-8", "replace").partition("=") for entry in data.split(b"\0"))
    return {name: value for name, _, value in pairs if name}


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
