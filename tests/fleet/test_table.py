"""The table on disk: what a killed command leaves, and what is read again."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pyarrow import parquet

from tests.fleet.runs import failed, reported, run, several
from tfdoctor.fleet.table import PAGES, PARQUET, ROWS, SCHEMA, FleetTable
from tfdoctor.terms.errors import OutputError


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = several()
    with FleetTable(tmp_path / "new") as table:
        for row in rows:
            table.add(row)
    with FleetTable(tmp_path / "new") as table:
        assert list(table.rows.values()) == rows


def test_a_line_that_was_not_finished_is_cut_off(tmp_path: Path) -> None:
    with FleetTable(tmp_path) as table:
        table.add(run("/a"))
        table.add(run("/b"))
    path = tmp_path / ROWS
    path.write_bytes(path.read_bytes()[:-10])
    with FleetTable(tmp_path) as table:
        assert list(table.rows) == ["key of /a"]
        table.add(run("/c"))
    with FleetTable(tmp_path) as table:
        assert list(table.rows) == ["key of /a", "key of /c"]


def test_damaged_lines_are_examined_again(tmp_path: Path) -> None:
    with FleetTable(tmp_path) as table:
        table.add(run("/a"))
    path = tmp_path / ROWS
    damaged = {**json.loads(path.read_text()), "key": "other", "steps": "many"}
    path.write_text(f"{path.read_text()}no JSON\n[]\n{json.dumps(damaged)}\n")
    with FleetTable(tmp_path) as table:
        assert list(table.rows) == ["key of /a"]


def test_the_last_row_of_a_place_counts(tmp_path: Path) -> None:
    with FleetTable(tmp_path) as table:
        table.add(run("/a", step_ms=10.0))
        table.add(run("/a", step_ms=20.0))
    with FleetTable(tmp_path) as table:
        assert [row.step_ms for row in table.rows.values()] == [20.0]


def test_two_commands_do_not_write_one_table(tmp_path: Path) -> None:
    with FleetTable(tmp_path), pytest.raises(OutputError, match="Another `tfdoctor fleet` writes"):
        FleetTable(tmp_path).__enter__()
    with FleetTable(tmp_path):
        pass


def test_a_folder_that_is_a_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="choose another folder"):
        FleetTable(tmp_path / "file").__enter__()


def test_parquet_and_json_lines_have_the_same_rows(tmp_path: Path) -> None:
    made = reported(prices=("2.5",))
    with FleetTable(tmp_path) as table:
        table.finish([*made.runs, *made.failed])
    lines = [json.loads(line) for line in (tmp_path / ROWS).read_text().splitlines()]
    rows = parquet.read_table(tmp_path / PARQUET).to_pylist()
    assert [row["place"] for row in lines] == sorted(one.place for one in several())
    for line, row in zip(lines, rows, strict=True):
        parts = row.pop("parts_ms")
        known = parts and {part: time for part, time in parts.items() if time is not None}
        assert known == line.pop("parts_ms")
        assert row == line
    broken = next(line for line in lines if line["failure"])
    assert broken["place"] == failed().place
    whole = next(line for line in lines if line["place"] == "gs://team/ada/3")
    assert whole["wasted_device_hours"] == pytest.approx(0.4 * 6)
    assert whole["wasted_usd"] == pytest.approx(2.5 * 0.4 * 6)


def test_a_finished_table_is_continued(tmp_path: Path) -> None:
    made = reported()
    with FleetTable(tmp_path) as table:
        table.finish([*made.runs, *made.failed])
    with FleetTable(tmp_path) as table:
        assert {row.place: replace(row, job="") for row in table.rows.values()} == {
            row.place: row for row in several()
        }


def test_every_column_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/fleet.md").read_text()
    assert [name for name in SCHEMA.names if f"`{name}`" not in page] == []


def test_a_copy_is_known_again(tmp_path: Path) -> None:
    made = reported([run("/a", digest="same"), run("/b", digest="same")])
    with FleetTable(tmp_path) as table:
        table.finish([*made.runs, *made.failed])
    with FleetTable(tmp_path) as table:
        assert [(key, row.place, row.copies == ()) for key, row in table.rows.items()] == [
            ("key of /a", "/a", False),
            ("key of /b", "/b", True),
        ]


@pytest.mark.parametrize("junk", [b"\xff\xfe\n", b'{"place": "\\ud800", "key": "k"}\n', b"[" * 100_000 + b"\n"])
def test_what_is_no_row_is_left_out(tmp_path: Path, junk: bytes) -> None:
    (tmp_path / ROWS).write_bytes(junk)
    with FleetTable(tmp_path) as table:
        assert table.rows == {}


@pytest.mark.parametrize("name", ["runs.parquet", "fleet.html"])
def test_a_folder_with_the_name_of_a_file_is_found_before_the_work(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(OutputError, match="is not a file"):
        FleetTable(tmp_path).__enter__()


@pytest.mark.parametrize("name", [ROWS, PAGES])
def test_nothing_behind_a_link_is_changed(name: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("precious\nhalf")
    (tmp_path / "fleet").mkdir()
    (tmp_path / "fleet" / name).symlink_to(outside / "file" if name == ROWS else outside)
    with pytest.raises(OutputError, match="link"), FleetTable(tmp_path / "fleet"):
        pytest.fail("it was opened")
    assert (outside / "file").read_text() == "precious\nhalf"


def test_pages_of_rows_that_are_gone_are_removed(tmp_path: Path) -> None:
    with FleetTable(tmp_path) as table:
        kept = run("/a", digest="a" * 64)
        kept = run("/a", digest="a" * 64, report=table.add_page(kept, "page"))
        table.add_page(run("/b", digest="b" * 64), "page")
        (tmp_path / "reports" / "notes.html").touch()
        made = reported([kept])
        table.finish([*made.runs, *made.failed])
    pages = sorted(page.name for page in (tmp_path / "reports").iterdir())
    assert pages == [f"{'a' * 16}.html", "notes.html"]
