"""The table on disk: what a killed command leaves, and what is read again."""

from pyarrow import parquet

from tests.fleet.runs import failed, reported, run, several
from tests.kit import *
from tfdoctor.fleet.table import PAGES, PARQUET, ROWS, SCHEMA, FleetTable


def test_rows_are_read_as_they_were_written_and_the_last_one_of_a_place_counts(tmp_path: Path) -> None:
    rows = several()
    with FleetTable(tmp_path / "new") as table:
        for row in rows:
            table.add(replace(row, steps=7))
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


@each(
    b"no JSON\n[]\n",
    json.dumps({**asdict(run()), "key": "other", "steps": "many"}).encode() + b"\n",
    b"\xff\xfe\n",
    b'{"place": "\\ud800", "key": "k"}\n',
    b"[" * 100_000 + b"\n",
)
def test_what_is_no_row_is_examined_again(junk: bytes, tmp_path: Path) -> None:
    with FleetTable(tmp_path) as table:
        table.add(run("/a"))
    (tmp_path / ROWS).write_bytes((tmp_path / ROWS).read_bytes() + junk)
    with FleetTable(tmp_path) as table:
        assert list(table.rows) == ["key of /a"]


@cases(
    ("", "file", "choose another folder"),
    ("fleet", "fleet/runs.parquet/", "is not a file"),
    ("fleet", "fleet/fleet.html/", "is not a file"),
)
def test_what_is_in_the_way_is_found_before_the_work(folder: str, there: str, said: str, tmp_path: Path) -> None:
    if there.endswith("/"):
        (tmp_path / there).mkdir(parents=True)
    else:
        (tmp_path / there).touch()
    with pytest.raises(OutputError, match=said):
        FleetTable(tmp_path / (folder or there)).__enter__()


def test_two_commands_do_not_write_one_table(tmp_path: Path) -> None:
    with FleetTable(tmp_path), pytest.raises(OutputError, match="Another `tfdoctor fleet` writes"):
        FleetTable(tmp_path).__enter__()
    with FleetTable(tmp_path):
        pass


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
    """Also with copies, of which each has a row again."""
    copies = [run("/a", digest="same"), run("/b", digest="same")]
    made = reported([*several(), *copies])
    with FleetTable(tmp_path) as table:
        table.finish([*made.runs, *made.failed])
    with FleetTable(tmp_path) as table:
        rows = {row.place: replace(row, job="", copies=()) for row in table.rows.values()}
        assert rows == {row.place: row for row in (*several(), *copies)}
        assert [copy.place for copy in table.rows["key of /a"].copies] == ["/b"]


def test_every_column_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/fleet.md").read_text()
    assert [name for name in SCHEMA.names if f"`{name}`" not in page] == []


@each(ROWS, PAGES)
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
