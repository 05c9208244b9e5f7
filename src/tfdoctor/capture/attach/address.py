"""Where a profiler server listens."""

import re
from dataclasses import dataclass
from typing import Self

from tfdoctor.errors import CaptureError

ADDRESS = re.compile(r"(?P<host>[A-Za-z0-9][\w.-]*|\[[0-9A-Fa-f:.]+\]):(?P<port>\d{1,5})")
"""A name or number, or an IPv6 address in brackets; and a port."""

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
            CaptureError: one of them is none, or is there twice.
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
            CaptureError: it is none.
        """
        found = ADDRESS.fullmatch(text.removeprefix("grpc://"))
        if found is None or not 0 < int(found["port"]) <= HIGHEST_PORT:
            raise CaptureError(
                f"{text!r} is not an address: write host:port, such as localhost:6009, with the port "
                "that the job passed to tf.profiler.experimental.server.start()."
            )
        return cls(found["host"].lower(), int(found["port"]))

    @property
    def name(self) -> str:
        """What its files are called: no letter of it means anything to a shell."""
        return f"{self.host.strip('[]').replace(':', '-')}_{self.port}"

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"
