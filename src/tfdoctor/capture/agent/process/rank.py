"""Which worker of several a process is, as launchers say it in its environment."""

from __future__ import annotations

import re

from .kept import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypedDict

    class Rank(TypedDict):
        """A worker's place in its job; None is unknown."""

        name: str
        rank: int | None
        size: int | None


CLUSTERS = ("TF_CONFIG", "CLUSTER_SPEC")
"""JSON with the tasks of a job and which of them this is; TensorFlow's own and Vertex AI's. A TFJob with
`enableDynamicWorker` names a worker only itself and the parameter servers, by a mapping in place of a list."""

NUMBERS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("HOROVOD_RANK", "HOROVOD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
"""A worker's number and how many there are. The number is enough; but Slurm's batch script has one
too, which is no worker's."""

INDEX = "JOB_COMPLETION_INDEX"
"""A pod's number in an Indexed Job of Kubernetes, which does not say how many there are."""

STEP = "SLURM_STEP_ID"
"""Slurm's sign that this is one of the tasks that `srun` started."""

FIRST = ("chief", "master", "worker")
"""Kinds of tasks that train, in the order of their numbers; others come after them."""


def rank(environment: Mapping[str, str]) -> Rank | None:
    """Return the rank of a worker among several, or None; without a size it may be alone."""
    for name in CLUSTERS:
        worker = _of_cluster(environment.get(name))
        if worker:
            return worker
    for number, size in NUMBERS:
        if number == "SLURM_PROCID" and STEP not in environment and size not in environment:
            continue
        worker = _of_numbers(environment.get(number) or "", environment.get(size) or "")
        if worker:
            return worker
    # A host or a pod may run several of the workers above, so it counts last.
    return _of_hosts(environment) or _of_numbers(environment.get(INDEX) or "", "")


def _of_hosts(environment: Mapping[str, str]) -> Rank | None:
    """Return the place of this host among those of a training job of SageMaker."""
    try:
        hosts = json.loads(environment["SM_HOSTS"])
        number = hosts.index(environment["SM_CURRENT_HOST"])
    except (ValueError, KeyError, AttributeError):
        return None
    return _of_numbers(str(number), str(len(hosts)))


def _of_numbers(number: str, size: str) -> Rank | None:
    if not number.isdecimal():
        return None
    known = int(size) if size.isdecimal() else None  # unknown: there may be others
    if known in (0, 1):  # a job of one is no worker among several
        return None
    return {"name": f"worker-{int(number)}", "rank": int(number), "size": known}


def _of_cluster(text: str | None) -> Rank | None:
    try:
        spec = json.loads(text or "")
        kind, index = str(spec["task"]["type"]), int(spec["task"]["index"])
        tasks = {str(name): hosts for name, hosts in spec["cluster"].items() if hosts is not None}
        counts = {name: len(hosts) for name, hosts in tasks.items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    name = re.sub(r"[^\w.-]", "_", kind)  # it becomes the name of a folder
    if any(isinstance(hosts, dict) for hosts in tasks.values()):  # the others are not told to it
        return {"name": f"{name}-{index}", "rank": index if kind in FIRST else None, "size": None}
    size = sum(counts.values())
    if size < 2:  # noqa: PLR2004  # a job of one
        return None
    order = [*(name for name in FIRST if name in counts), *sorted(counts.keys() - set(FIRST))]
    before = sum(counts[name] for name in order[: order.index(kind)]) if kind in order else size
    return {"name": f"{name}-{index}", "rank": before + index, "size": size}
