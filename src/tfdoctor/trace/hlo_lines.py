"""The lines of Python source that made an instruction of XLA's, from a module's table of stack frames.

JAX writes the frames of a program's functions without its own; those of other installed packages are skipped
here. Older programs have one file and line for each instruction instead.
"""

from typing import Any

from tfdoctor.terms.record import Record, field
from tfdoctor.trace.texts import clean

# Parts of the paths of files that are not the user's.
INSTALLED = ("site-packages/", "dist-packages/", "<frozen ", "/lib/python3")


class SourceLines(Record):
    """Finds the user's line in the stack frames of a module; numbers in the table begin with 1."""

    table: Any
    known: dict[int, tuple[str, int] | None] = field(default_factory=dict)  # by frame

    def of(self, metadata: Any) -> tuple[str, int] | None:  # noqa: ANN401 - a message
        """Return the innermost file and line of the user's that an instruction's metadata names."""
        frame, passed, place = metadata.stack_frame_id, list[int](), None
        frames, places = self.table.stack_frames, self.table.file_locations
        while 0 < frame <= len(frames) and frame not in self.known:
            place = self._file(places, frames[frame - 1].file_location_id)
            self.known[frame] = place  # ends a circle of frames, too
            passed.append(frame)
            frame = 0 if place else frames[frame - 1].parent_frame_id
        place = place or self.known.get(frame)
        self.known.update(dict.fromkeys(passed, place))
        return place or _of_user(metadata.source_file, metadata.source_line)

    def _file(self, places: Any, number: int) -> tuple[str, int] | None:  # noqa: ANN401 - messages
        if not 0 < number <= len(places):
            return None
        place, names = places[number - 1], self.table.file_names
        known = 0 < place.file_name_id <= len(names)
        return _of_user(names[place.file_name_id - 1], place.line) if known else None


def _of_user(path: str, line: int) -> tuple[str, int] | None:
    outside = any(part in path for part in INSTALLED)
    return (clean(path), line) if path and line and not outside else None
