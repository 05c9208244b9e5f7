"""Which worker of several a process is, as launchers say it in its environment."""

from __future__ import annotations

import re

from .kept import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Rank = dict[str, Any]  # a worker's name, its rank in the job, and the job's size; None is unknown


# JSON with the tasks of a job and which of them this is; TensorFlow's own and Vertex AI's. A TFJob with
# `enableDynamicWorker` names a worker only itself and the parameter servers, by a mapping in place of a list.
CLUSTERS = ("TF_CONFIG", "CLUSTER_SPEC")

# A worker's number and how many there are. The number is enough; but Slurm's batch script has one too, which is no
# worker's.
NUMBERS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("HOROVOD_RANK", "HOROVOD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)

# A pod's number in an Indexed Job of Kubernetes, which does not say how many there are.
INDEX = "JOB_COMPLETION_INDEX"
STEP = "SLURM_STEP_ID"  # Slurm's sign that this is one of the tasks that `srun` started
HOSTS = "SM_HOSTS"  # JSON with the names of the machines of a training job of SageMaker
# Longest number of a worker, and longest name of a kind of tasks: they become the name of a folder.
DIGITS, LETTERS = 9, 60
# Kinds of tasks that train, in the order of their numbers; others come after them.
FIRST = ("chief", "master", "worker")


def rank(environment: Mapping[str, str]) -> Rank | None:
    """Return the rank of a worker among several, or None; without a size it may be alone."""
    workers = [_of_cluster(environment.get(name)) for name in CLUSTERS]
    for number, size in NUMBERS:
        if number != "SLURM_PROCID" or STEP in environment or size in environment:
            workers.append(_of_numbers(environment.get(number) or "", environment.get(size) or ""))
    # A host or a pod may run several of the workers above, so it counts last.
    workers += [_of_hosts(environment), _of_numbers(environment.get(INDEX) or "", "")]
    return next(filter(None, workers), None)


def unreadable(environment: Mapping[str, str]) -> list[str]:
    """Return the variables of launchers that are set to something else than launchers set them to."""
    given = {name: value for name, value in environment.items() if value}
    numbers = [name for pair in NUMBERS for name in pair] + [INDEX]
    found = [name for name in CLUSTERS if name in given and _tasks(given[name]) == ()]
    if HOSTS in given and not isinstance(_json(given[HOSTS]), list):
        found.append(HOSTS)
    return found + [name for name in numbers if name in given and _number(given[name]) is None]


def _json(text: str | None) -> Any:  # noqa: ANN401 - what is in it
    try:
        return json.loads(text or "")
    except (ValueError, RecursionError):
        return None


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) <= DIGITS else None


def _of_hosts(environment: Mapping[str, str]) -> Rank | None:
    hosts, own = _json(environment.get(HOSTS)), environment.get("SM_CURRENT_HOST")
    if not isinstance(hosts, list) or own not in hosts:
        return None
    return _of_numbers(str(hosts.index(own)), str(len(hosts)))


def _of_numbers(number: str, size: str) -> Rank | None:
    own, known = _number(number), _number(size)  # an unknown size: there may be others
    if own is None or known in (0, 1):  # a job of one is no worker among several
        return None
    return {"name": f"worker-{own}", "rank": own, "size": known}


def _tasks(text: str | None) -> tuple[str, int, dict[str, Any]] | tuple[()] | None:
    """Return the kind and the number of a task, and all tasks: () where they cannot be read, None without any."""
    spec = _json(text)
    if not isinstance(spec, dict) or not spec.get("task") or not spec.get("cluster"):
        return None if isinstance(spec, dict) else ()
    try:
        kind, index = str(spec["task"]["type"]), _number(str(spec["task"]["index"]))
        tasks = {str(name): hosts for name, hosts in spec["cluster"].items() if hosts is not None}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return ()
    whole = all(isinstance(hosts, (list, dict)) for hosts in tasks.values())
    return () if index is None or not whole or len(kind) > LETTERS else (kind, index, tasks)


def _of_cluster(text: str | None) -> Rank | None:
    found = _tasks(text)
    if not found:
        return None
    kind, index, tasks = found
    counts = {name: len(hosts) for name, hosts in tasks.items()}
    name = re.sub(r"[^\w.-]", "_", kind)  # it becomes the name of a folder
    if any(isinstance(hosts, dict) for hosts in tasks.values()):  # the others are not told to it
        return {"name": f"{name}-{index}", "rank": index if kind in FIRST else None, "size": None}
    size = sum(counts.values())
    if size < 2:  # noqa: PLR2004  # a job of one
        return None
    order = [*(name for name in FIRST if name in counts), *sorted(counts.keys() - set(FIRST))]
    before = sum(counts[name] for name in order[: order.index(kind)]) if kind in order else size
    return {"name": f"{name}-{index}", "rank": before + index, "size": size}
