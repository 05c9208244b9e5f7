"""What a reader has to say of a recording: what it passed over, and what is damaged."""

from dataclasses import dataclass, field

NAMED = 3
"""Places of damaged values that a note names."""


@dataclass(slots=True)
class Notes:
    """The sentences in the order in which they came up; `damage` are those of them that cost data."""

    texts: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Note what the reader of a report should know."""
        self.texts.append(text)

    def damaged(self, text: str) -> None:
        """Note that something could not be read."""
        self.texts.append(text)
        self.damage.append(text)

    def left_out(self, file: str, faults: list[str]) -> None:
        """Note which values of a file were left out, if any."""
        if not faults:
            return
        places = ", ".join(fault.lstrip(".") or "the whole file" for fault in faults[:NAMED])
        more = ", …" if len(faults) > NAMED else ""
        values = "1 damaged value" if len(faults) == 1 else f"{len(faults)} damaged values"
        self.damaged(f"{values} of {file} left out: {places}{more}")
