"""The lines of Python source that made an instruction of XLA's, from a module's table of stack frames.

JAX writes the frames of a program's functions without its own; those of other installed packages are skipped
here. Older programs have one file and line for each instruction instead.
"""

from dataclasses import dataclass
from typing import Any

INSTALLED = ("site-packages/", "dist-packages/", "<frozen ", "/lib/python3")
"""Parts of the paths of files that are not the user's."""


@dataclass(frozen=True, slots=True)
class SourceLines:
    """Finds the user's line in the stack frames of a module; numbers in the table begin with 1."""

    table: Any

    def of(self, metadata: Any) -> tuple[str, int] | None:  # noqa: ANN401 - a message
        """Return the innermost file and line of the user's that an instruction's metadata names."""
        frame, seen = metadata.stack_frame_id, 0
        frames, places = self.table.stack_frames, self.table.file_locations
        while 0 < frame <= len(frames) and seen <= len(frames):
            if place := self._file(places, frames[frame - 1].file_location_id):
                return place
            frame, seen = frames[frame - 1].parent_frame_id, seen + 1
        return _of_user(metadata.source_file, metadata.source_line)

    def _file(self, places: Any, number: int) -> tuple[str, int] | None:  # noqa: ANN401 - messages
        if not 0 < number <= len(places):
            return None
        place, names = places[number - 1], self.table.file_names
        known = 0 < place.file_name_id <= len(names)
        return _of_user(names[place.file_name_id - 1], place.line) if known else None


def _of_user(path: str, line: int) -> tuple[str, int] | None:
    outside = any(part in path for part in INSTALLED)
    return (path, line) if path and line and not outside else None
