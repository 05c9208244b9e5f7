"""Notes from reading a recording: what was skipped and what is damaged."""

from dataclasses import dataclass, field

from tfdoctor.terms.text import legible

NAMED = 3  # How many damaged values a note names


@dataclass(slots=True)
class Notes:
    """The notes in order; `damage` contains those about lost data."""

    texts: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Add a note for the reader of a report."""
        self.texts.append(legible(text))

    def damaged(self, text: str) -> None:
        """Add a note about data that could not be read."""
        self.add(text)
        self.damage.append(self.texts[-1])

    def left_out(self, file: str, faults: list[str]) -> None:
        """Add a note about the values of a file that were left out, if any."""
        if not faults:
            return
        places = ", ".join(fault.lstrip(".") or "the whole file" for fault in faults[:NAMED])
        more = ", …" if len(faults) > NAMED else ""
        values = "1 damaged value" if len(faults) == 1 else f"{len(faults)} damaged values"
        self.damaged(f"{values} of {file} left out: {places}{more}")
