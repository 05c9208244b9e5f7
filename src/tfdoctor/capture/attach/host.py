"""Describes the machine of an attached job: fully if it is this one, else by its name."""

import os
import platform
from dataclasses import replace
from pathlib import Path

import psutil

from tfdoctor.capture import machine
from tfdoctor.recording.manifest import HostMachine


def host(name: str, port: int) -> HostMachine:
    """Describe the machine that a trace names; `port` identifies the job if it runs on this one.

    The address does not decide that: `localhost` may be the end of a tunnel.
    """
    if name != platform.node():
        return HostMachine(name=name)
    this_machine = machine.host()
    return this_machine if _shares_limits(port) else replace(this_machine, cores_usable=0.0)


def _shares_limits(port: int) -> bool:
    """Return whether the process that listens on a port of this machine may use the same cores as we.

    It may if it has our CPU affinity and cgroup; False if we may not see it.
    """
    try:
        connections = psutil.net_connections("tcp")
        listening = (item for item in connections if item.status == psutil.CONN_LISTEN)
        pid = next((item.pid for item in listening if item.laddr[1:] == (port,)), None)
        if pid is None:
            return False
        same = Path(f"/proc/{pid}/cgroup").read_bytes() == Path("/proc/self/cgroup").read_bytes()
        return same and os.sched_getaffinity(pid) == os.sched_getaffinity(0)
    except (OSError, psutil.Error):  # it has ended, or is another user's
        return False
