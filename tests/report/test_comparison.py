"""Each rendering of each kind of comparison, byte for byte; and the page in a browser."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.report import comparisons
from tfdoctor.diagnosis import PARTS
from tfdoctor.errors import OutputError
from tfdoctor.report import comparison
from tfdoctor.report.comparison import terminal

Compare = Callable[[str, str], None]


@pytest.mark.parametrize("kind", comparisons.ALL)
@pytest.mark.parametrize("file_format", comparison.FORMATS)
def test_files(kind: str, file_format: str, golden: Compare) -> None:
    golden(f"diff-{kind}.{file_format}", comparison.render(file_format, comparisons.ALL[kind]()))


@pytest.mark.parametrize("kind", comparisons.ALL)
def test_terminal(kind: str, golden: Compare) -> None:
    golden(f"diff-{kind}.txt", terminal.render(comparisons.ALL[kind](), width=80, color=False))


def test_names_of_a_trace_do_not_become_markup() -> None:
    page = comparison.render("html", comparisons.unlike())
    assert "<img" not in page
    assert page.count("</script>") == 1


def test_the_page_has_the_comparison_as_json() -> None:
    page = comparison.render("html", comparisons.faster())
    start = page.index('id="comparison">') + len('id="comparison">')
    content = json.loads(page[start : page.index("</script>", start)])
    assert content == json.loads(comparison.render("json", comparisons.faster()))


def test_an_unwritable_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be written"):
        comparison.write(comparisons.faster(), tmp_path / "file", ["md"])


def keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from keys(item)


def test_every_field_of_the_json_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/json-comparison.md").read_text()
    documented = set(re.findall(r"`\.?(?:\w+\.)?(\w+)(?:\[\])?`", page))
    for made in comparisons.ALL.values():
        shown = set(keys(json.loads(comparison.render("json", made()))))
        assert shown - documented <= {*PARTS, "path", "line"}
