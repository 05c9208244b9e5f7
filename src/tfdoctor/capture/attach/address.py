"""The host and port of a profiler server."""

import re
from dataclasses import dataclass
from typing import Self

from tfdoctor.terms.errors import CaptureError

# A host name, an IPv4 address or an IPv6 address in brackets; then a port.
ADDRESS = re.compile(r"(?P<host>[A-Za-z0-9][\w.-]*|\[[0-9A-Fa-f:.]+\]):(?P<port>\d{1,5})")

HIGHEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class Address:
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
