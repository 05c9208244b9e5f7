"""The source does not grow: no room has more lines of Python than ``[tool.lines]`` in pyproject.toml says."""

from tests.kit import *

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "tfdoctor"
LIMITS: dict[str, int] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["lines"]

SLACK = 150
"""Lines that a limit may stand above its room: below that the limit has to fall with it."""


def lines_of(room: str) -> int:
    path = SOURCE / room
    files = path.rglob("*.py") if path.is_dir() else [path]
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def test_every_room_has_a_limit() -> None:
    rooms = {path.name for path in SOURCE.iterdir() if path.name != "__pycache__"}
    assert rooms == set(LIMITS)


def test_no_room_is_larger_than_its_limit() -> None:
    assert {room: lines_of(room) for room, most in LIMITS.items() if lines_of(room) > most} == {}


def test_no_limit_stays_behind_its_room() -> None:
    assert {room: lines_of(room) for room, most in LIMITS.items() if lines_of(room) < most - SLACK} == {}
