"""Asks profiler servers for a trace, each from its own process, all at the same moment.

The client is xprof's, since TensorFlow's ignores every option. Its C++ code prints on stdout, logs on stderr
and can abort, so it runs in a process.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tfdoctor import own_python
from tfdoctor.terms.errors import CaptureError
from tfdoctor.terms.record import Record

CHILD = Path(__file__).with_name("client_child.py")

RUN = "run"  # The session's name; names that the client chooses collide within a second

STARTING_S = 0.5
STARTING_PER_CLIENT_S = 0.1  # Time to load the clients (0.1 s each) before all of them ask
GRPC_S, GRPC_FACTOR = 60.0, 2.0  # The client waits 60 s for a server, or twice the traced time if that is longer
GRACE_S = 30.0  # Time after the client's own limit until a stuck client is killed

STARTED = re.compile(r"^started (\d+)$", re.MULTILINE)

IDLE = "No trace event is collected from"

# The client's log line for a gRPC error: its status and message.
RETURNED = re.compile(r"\breturned ([A-Z_]+): (.*)")

# Messages of gRPC and of the server, with what they mean for the user.
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

# A host name, an IPv4 address or an IPv6 address in brackets; then a port.
ADDRESS = re.compile(r"(?P<host>[A-Za-z0-9][\w.-]*|\[[0-9A-Fa-f:.]+\]):(?P<port>\d{1,5})")

HIGHEST_PORT = 65535


class Address(Record):
    """A host and a port, as the user wrote them."""

    host: str
    port: int

    @classmethod
    def parse_all(cls, text: str) -> tuple[Self, ...]:
        """Read `host:port`, several with commas, with or without TensorFlow's `grpc://`.

        Raises:
            CaptureError: a part is not an address, or an address occurs twice.
        """
        addresses = tuple(cls.parse(part.strip()) for part in text.split(","))
        for place, address in enumerate(addresses):
            if address in addresses[:place]:
                raise CaptureError(f"{address} is listed twice: list each worker once.")
        return addresses

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read one address.

        Raises:
            CaptureError: the text is not an address.
        """
        match = ADDRESS.fullmatch(text.removeprefix("grpc://"))
        if match is None or not 0 < int(match["port"]) <= HIGHEST_PORT:
            raise CaptureError(
                f"{text!r} is not an address: write host:port, such as localhost:6009, with the port "
                "that the job passed to tf.profiler.experimental.server.start()."
            )
        return cls(match["host"].lower(), int(match["port"]))

    @property
    def name(self) -> str:
        """The name of its files, without characters that are special to a shell."""
        return f"{self.host.strip('[]').replace(':', '-')}_{self.port}"

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Answer(Record):
    """The result of asking one server; `why` says why there is no trace."""

    address: Address
    trace: Path | None = None
    started_unix_ns: int = 0
    reached: bool = True
    why: str = ""


def ask(addresses: Sequence[Address], private: Path, seconds: float) -> tuple[Answer, ...]:
    """Trace all servers for so many seconds; the traces are written below a private folder.

    Raises:
        OSError: a process could not be started.
    """
    wait = STARTING_S + STARTING_PER_CLIENT_S * len(addresses)
    start_ns = time.time_ns() + int(wait * 1e9)
    deadline = time.monotonic() + wait + max(GRPC_S, GRPC_FACTOR * seconds) + GRACE_S
    children: list[subprocess.Popen[str]] = []
    try:
        for address in addresses:
            arguments = (str(address), str(private), RUN, f"{seconds * 1000:.0f}", str(start_ns))
            child = subprocess.Popen(  # noqa: S603 - our own child
                [sys.executable, "-P", str(CHILD), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=own_python.own(os.environ),
                encoding="utf-8",
                errors="replace",
            )
            children.append(child)
        return tuple(
            _answer(address, child, deadline, private / "plugins" / "profile" / RUN)
            for address, child in zip(addresses, children, strict=True)
        )
    finally:
        for child in children:
            child.kill()
            child.communicate()


def _answer(address: Address, child: subprocess.Popen[str], deadline: float, folder: Path) -> Answer:
    try:
        output, log = child.communicate(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return Answer(address, reached=False, why="no trace arrived in time")
    written = folder / f"{str(address).replace(':', '_')}.xplane.pb"
    if child.returncode == 0 and written.is_file():
        return Answer(address, written, _started(output))
    returned = RETURNED.search(log)
    if IDLE in log and returned is None:
        why = "the job ran no TensorFlow operation in this time: attach while it trains, or trace longer"
        return Answer(address, None, _started(output), why=why)
    if child.returncode < 0:
        why = f"the profiler client was killed by signal {-child.returncode}"
    elif returned is None:
        lines = [line.strip() for line in log.splitlines() if line.strip()]
        why = lines[-1] if lines else "the profiler client failed without a message"
    else:
        error = f"{returned[1]}: {returned[2]}"
        known = (words.format(port=address.port) for part, words in REASONS.items() if part in error)
        why = next(known, error.rstrip("."))
    return Answer(address, reached=False, why=why)


def _started(output: str) -> int:
    match = STARTED.search(output)
    return int(match[1]) if match else 0
