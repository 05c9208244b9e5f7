"""Asks profiler servers for a trace, each from a process of its own, all at the same moment.

The client is xprof's: TensorFlow's own ignores every option. It is C++ that prints on stdout, logs on
stderr and can abort, hence the processes.
"""

import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tfdoctor.capture.attach.address import Address

CHILD = Path(__file__).with_name("client_child.py")

RUN = "run"
"""Named by us, for the client overwrites what it named within the same second."""

STARTING_S = 0.5
STARTING_EACH_S = 0.1
"""Time to load the client, which takes 0.1 s, before the moment at which all of them ask."""

GRPC_S, GRPC_TIMES = 60.0, 2.0
"""The client gives a server 60 s, or twice the traced time when that is longer."""

GRACE_S = 30.0
"""Beyond the client's own limit, when it is stuck."""

STARTED = re.compile(r"^started (\d+)$", re.MULTILINE)

IDLE = "No trace event is collected from"

RETURNED = re.compile(r"\breturned ([A-Z_]+): (.*)")
"""How the client logs what gRPC said: the status and its message."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of asking one server; `why` says why there is no trace."""

    address: Address
    trace: Path | None = None
    started_unix_ns: int = 0
    reached: bool = True
    why: str = ""


def ask(addresses: Sequence[Address], private: Path, seconds: float) -> tuple[Answer, ...]:
    """Trace all of them for so long; the traces lie in a folder that is nobody else's.

    Raises:
        OSError: a process could not be started.
    """
    wait = STARTING_S + STARTING_EACH_S * len(addresses)
    start_ns = time.time_ns() + int(wait * 1e9)
    until = time.monotonic() + wait + max(GRPC_S, GRPC_TIMES * seconds) + GRACE_S
    children: list[subprocess.Popen[str]] = []
    try:
        for address in addresses:
            given = (str(address), str(private), RUN, f"{seconds * 1000:.0f}", str(start_ns))
            children.append(_start(given))
        return tuple(
            _answer(address, child, until, private / "plugins" / "profile" / RUN)
            for address, child in zip(addresses, children, strict=True)
        )
    finally:
        for child in children:
            child.kill()
            child.communicate()


def _start(given: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - our own child
        [sys.executable, "-P", str(CHILD), *given],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )


def _answer(address: Address, child: subprocess.Popen[str], until: float, folder: Path) -> Answer:
    try:
        said, logged = child.communicate(timeout=max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return Answer(address, reached=False, why="no trace arrived in time")
    written = folder / f"{str(address).replace(':', '_')}.xplane.pb"
    if child.returncode == 0 and written.is_file():
        return Answer(address, written, _started(said))
    if IDLE in logged and RETURNED.search(logged) is None:
        why = "the job ran no TensorFlow operation in this time: attach while it trains, or trace longer"
        return Answer(address, None, _started(said), why=why)
    return Answer(address, reached=False, why=reason(address, child.returncode, logged))


def _started(said: str) -> int:
    found = STARTED.search(said)
    return int(found[1]) if found else 0


def reason(address: Address, returncode: int, logged: str) -> str:
    """Return in words why a server gave no trace."""
    if returncode < 0:
        return f"the profiler client was killed by signal {-returncode}"
    found = RETURNED.search(logged)
    if found is None:
        lines = [line.strip() for line in logged.splitlines() if line.strip()]
        return lines[-1] if lines else "the profiler client failed without a message"
    said = found[0].removeprefix("returned ")
    for part, words in REASONS.items():
        if part in said:
            return words.format(port=address.port)
    return said.rstrip(".")


REASONS = {
    "Another profiling session": "another profile is running there: try again when it is done",
    "Connection refused": (
        "nothing listens on this port: call tf.profiler.experimental.server.start({port}) in the job first"
    ),
    "hostname lookup": "unknown host: check its name",
    "HTTP/2": "no profiler server listens on this port: check the port",
    "UNIMPLEMENTED": "no profiler server listens on this port: check the port",
    "timed out": "no answer: check the address and the firewall",
    "Socket closed": "the connection was lost before the trace arrived: check whether the job has ended",
    "Connection reset": "the connection was lost before the trace arrived: check whether the job has ended",
    "DEADLINE_EXCEEDED": "no trace arrived in time",
}
"""Messages of gRPC and the server, and what they mean for the user."""
