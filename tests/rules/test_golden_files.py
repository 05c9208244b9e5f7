"""Each golden file of the rules' cases is compared by a test."""

import importlib
from pathlib import Path

from tests.rules.golden_cases import FILES

FOLDER = Path(__file__).parent


def test_no_file_is_left_of_a_test_that_is_gone() -> None:
    for path in FOLDER.glob("test_*.py"):
        importlib.import_module(f"tests.rules.{path.stem}")
    assert {path.name for path in (FOLDER / "golden").iterdir()} == FILES
