"""run.jsonl and run-now.json of a process: appended to, and replaced, so that what a killed run did is there."""

from __future__ import annotations

from ..process.kept import io, json, os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MOST_BYTES = 60_000_000  # The file of a week stays below: afterwards only buckets and the end are written

ALWAYS = ("bucket", "end", "dropped", "process")


MOST_WAITING = 2_000_000  # Bytes that wait for a full disk to have room again; what comes then is lost


class LogFile:
    """The two files in the folder of a process."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, "run.jsonl")
        self.now = os.path.join(folder, "run-now.json")
        self.size = os.path.getsize(self.path) if os.path.exists(self.path) else 0
        self.waiting = b""  # what could not be written

    def append(self, lines: Iterable[Mapping[str, object]]) -> None:
        """Add lines for good.

        Raises:
            OSError: the file cannot be written; the lines wait for the next call.
        """
        full = self.size >= MOST_BYTES
        texts = [_text(line) for line in lines if not full or line["kind"] in ALWAYS]
        data = self.waiting + "".join(texts).encode()
        if not data:
            return
        self.waiting = data if len(data) <= MOST_WAITING else self.waiting
        with io.open(self.path, "ab", buffering=0) as file:
            try:
                written = 0
                while written < len(data):
                    written += file.write(data[written:])
            except OSError:
                file.truncate(self.size)
                raise
        self.size += len(data)
        self.waiting = b""

    def replace(self, lines: Iterable[Mapping[str, object]]) -> None:
        """Write what is not over yet, in place of what was not over before.

        Raises:
            OSError: the file cannot be written.
        """
        temporary = f"{self.now}.tmp"
        with io.open(temporary, "wb") as file:
            file.write("".join(map(_text, lines)).encode())
        os.replace(temporary, self.now)

    def settle(self) -> None:
        """All is over: nothing is left to be replaced."""
        if os.path.exists(self.now):
            os.unlink(self.now)


def _text(line: Mapping[str, object]) -> str:
    return json.dumps(line, separators=(",", ":")) + "\n"
