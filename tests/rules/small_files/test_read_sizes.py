"""How large whole files are, by the read counters of the process."""

import pytest

from tests.builders import line, manifest, recording, trace
from tfdoctor.facts.chart import Unavailable
from tfdoctor.recording.agent import TracedWindow
from tfdoctor.rules.small_files.read_sizes import ReadSizes

READS = line("worker", *(("f/ReadFile:ReadFile", at, at + 0.5) for at in range(8)))
OTHER = line("worker", ("f/DecodeRaw:DecodeRaw", 0, 1))


def measured(nbytes: int | None, calls: int | None, *, reads: bool = True, recorded: bool = True) -> ReadSizes:
    window = TracedWindow(read_bytes=nbytes, read_calls=calls)
    kept = recording(manifest=manifest(window=window if recorded else None))
    return ReadSizes.measure(kept, trace(host=[READS, OTHER] if reads else [OTHER]))


def test_a_file_has_at_most_its_share_of_the_bytes() -> None:
    assert measured(8_000, 8).most == 1_000.0


def test_a_recording_without_counters_says_so() -> None:
    for missing in (measured_without_counters, measured_without_window):
        with pytest.raises(Unavailable, match="counters"):
            missing()


def measured_without_counters() -> ReadSizes:
    return measured(None, None)


def measured_without_window() -> ReadSizes:
    return measured(8_000, 8, recorded=False)


def test_files_that_no_system_call_read_have_no_known_size() -> None:
    with pytest.raises(Unavailable, match="system calls"):
        measured(8_000, 7)


def test_without_whole_files_there_is_nothing_to_divide() -> None:
    with pytest.raises(Unavailable, match="no operation"):
        measured(8_000, 8, reads=False)
