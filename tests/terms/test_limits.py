"""A process that reads what anybody may have made has limits of memory and time, which grow with what it reads."""

import resource

from tests.kit import *
from tfdoctor.terms import limits

BEGIN = "from tfdoctor.terms.limits import ROOM, lift; import resource; ROOM.begin();"


def run(code: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", BEGIN + code]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_more_memory_than_a_file_needs_is_refused() -> None:
    assert "MemoryError" in run("bytearray(8 * 2**30)").stderr


def test_a_file_brings_the_room_that_it_needs(tmp_path: Path) -> None:
    """Holes in a file, which take nothing on the disk, bring none."""
    (tmp_path / "trace").write_bytes(bytes(range(256)) * 2**16)
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(2**40)
    code = (
        "from tfdoctor.terms.files import opened; from pathlib import Path;"
        f"[opened(Path({str(tmp_path)!r}, name)) for name in ('trace', 'sparse')];"
        "print(resource.getrlimit(resource.RLIMIT_DATA)[0] // 2**20, resource.getrlimit(resource.RLIMIT_CPU)[0])"
    )
    assert run(code).stdout == f"{1024 + 8 * 16} {120 + 2 * 16}\n"


def test_a_process_without_limits_keeps_none() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    limits.Room().add(2**30)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_a_limit_of_the_user_stays() -> None:
    code = (
        "resource.setrlimit(resource.RLIMIT_DATA, (2**30, 2**30)); ROOM.add(2**40); lift();"
        "print(resource.getrlimit(resource.RLIMIT_DATA) == (2**30, 2**30))"
    )
    assert run(code).stdout == "True\n"


@cases((signal.SIGXCPU, "takes longer"), (signal.SIGSEGV, "SIGSEGV"))
def test_what_ended_a_process_is_one_sentence(number: int, said: str) -> None:
    told = limits.why(-number)
    assert (said in told, told[-1]) == (True, ".")
