"""What a trial says before it runs a program whose writes stay."""

from pathlib import Path

from tfdoctor.recording.manifest import WrittenFiles
from tfdoctor.terms.humanize import counted
from tfdoctor.terms.text import prose
from tfdoctor.trial.rounds import AROUND
from tfdoctor.trial.schedule import LEAST_ROUNDS

SHOWN = 3  # Names of written files in the sentence


def warning(why: str, folder: Path, variants: int, minutes: float, written: WrittenFiles | None) -> str:
    """Return why writes stay, how often and how long the program will run, and what it wrote when recorded."""
    runs = LEAST_ROUNDS * (AROUND + variants) + 1
    return (
        f"what the runs write cannot be thrown away here ({why}). The program will run in {folder} {runs} times or "
        f"more, as far as {minutes:g} minutes allow, and write its files again each time. {_wrote(written)}"
    )


def _wrote(written: WrittenFiles | None) -> str:
    """Return what the recording knows of the files that the program writes."""
    if written is None:
        return "Which files it writes is not recorded."
    elsewhere = "which files outside of the folder it writes is not recorded."
    if not written.count:
        return f"While it was recorded, no file in this folder changed; {elsewhere}"
    names = [prose(name) for name in written.names[:SHOWN]]
    more = f" and {written.count - len(names)} more" if written.count > len(names) else ""
    files = counted(written.count, "file")
    return f"While it was recorded, {files} in this folder changed ({', '.join(names)}{more}); {elsewhere}"
