"""Reads the runs of a history: stored reports as they are, and recordings without one."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from tfdoctor import __version__
from tfdoctor.compare.loading import Examine
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.fleet.places import FoundRecording
from tfdoctor.recording import Recording
from tfdoctor.remote.fetching import fetched_files
from tfdoctor.remote.filesystem import is_url
from tfdoctor.stored.files import NAMES, is_report, open_report
from tfdoctor.stored.report import finished
from tfdoctor.terms.errors import InputError
from tfdoctor.terms.files import is_below

Read = Diagnosis | InputError


def read_all(
    places: Sequence[FoundRecording],
    examine: Examine,
    rules: Sequence[Rule],
    tell: Callable[[int], object] = lambda _: None,
) -> Iterator[tuple[str, Read]]:
    """Yield each place with its report, or with why it cannot be read; ``tell`` hears of each before it is read."""
    with tempfile.TemporaryDirectory(prefix="tfdoctor-") as scratch:
        for number, place in enumerate(places, start=1):
            tell(number)
            try:
                yield place.shown, _read(place, Path(scratch, str(number)), examine, rules)
            except (InputError, OSError) as error:
                yield (place.shown, error if isinstance(error, InputError) else InputError(str(error)))


def _read(one: FoundRecording, scratch: Path, examine: Examine, rules: Sequence[Rule]) -> Diagnosis:
    """Return the report of a place; that beside a recording counts where this version wrote it.

    Raises:
        InputError: it cannot be read.
        OSError: it cannot be fetched.
    """
    at = Path(one.place)
    if is_url(one.place):
        scratch.mkdir()
        at = fetched_files(one.place, one.files, scratch)
    if is_report(at):
        return open_report(at, rules)
    for stored in (at / name for name in NAMES):
        with suppress(InputError):  # a damaged one: the recording is there
            if stored.is_file() and is_below(stored, at):
                report = open_report(stored, rules)
                if report.version == __version__ and report.subject.recorded:
                    return report
    recording = Recording.open(at)
    return finished(examine(recording, recording.title(at)))
