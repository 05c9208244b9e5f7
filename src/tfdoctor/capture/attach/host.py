"""The machine of an attached job: known when it is this one, else by its name alone."""

import os
import platform
from dataclasses import replace
from pathlib import Path

import psutil

from tfdoctor.capture import machine
from tfdoctor.recording.manifest import HostMachine


def host(name: str, port: int) -> HostMachine:
    """Describe the machine that a trace names; `port` finds the job, should it run on this one.

    An address says nothing of that: `localhost` may be the end of a tunnel.
    """
    if name != platform.node():
        return HostMachine(name=name)
    job = _listener(port)
    here = machine.host()
    return here if job is not None and _shares_limits(job) else replace(here, cores_usable=0.0)


def _listener(port: int) -> int | None:
    """Return the process that listens on a port of this machine, if we may know it."""
    try:
        found = psutil.net_connections("tcp")
    except psutil.Error:
        return None
    listening = (each for each in found if each.status == psutil.CONN_LISTEN)
    return next((each.pid for each in listening if each.laddr[1:] == (port,)), None)


def _shares_limits(pid: int) -> bool:
    """Say whether a process may use the same cores as we: the same affinity, the same cgroup."""
    try:
        same = Path(f"/proc/{pid}/cgroup").read_bytes() == Path("/proc/self/cgroup").read_bytes()
        return same and os.sched_getaffinity(pid) == os.sched_getaffinity(0)
    except OSError:  # it has ended, or is another user's
        return False
