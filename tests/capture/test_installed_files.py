"""Packages that were installed beside the script are not the user's lines."""

import sys
from pathlib import Path

import pytest

from tests.capture import agent


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the import path with an installed package, an installed module, and files of the user."""
    record = tmp_path / "plots-1.0.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text(
        'plots/__init__.py,sha256=x,1\n"plots/a,b.py",sha256=y,1\n../../bin/plots,,\n'
        "single.py,,\nplots-1.0.dist-info/RECORD,,\n"
    )
    (tmp_path / "broken-1.0.dist-info").mkdir()  # without a list of its files
    monkeypatch.setattr(sys, "path", ["", str(tmp_path / "nowhere"), str(tmp_path)])
    return tmp_path


@pytest.mark.parametrize(
    ("name", "users"),
    [
        ("plots/axes/lines.py", False),
        ("single.py", False),
        ("train.py", True),
        ("models/plots.py", True),
        ("plotsown/lines.py", True),
        ("broken/lines.py", True),
    ],
)
def test_what_an_installer_lists_is_no_file_of_the_user(folder: Path, name: str, users: object) -> None:
    path = str(folder / name)
    assert agent.load("process.stack").user_file(path) == (path if users else None)


def test_a_folder_that_is_not_imported_from_has_only_files_of_the_user(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [])
    assert not agent.load("process.stack").is_installed(str(folder / "single.py"))
