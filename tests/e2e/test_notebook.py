"""Notebooks in a real kernel: what `%%tfdoctor` and `tfdoctor.record` show, record and refuse."""

import json
import re
from pathlib import Path
from typing import Any

import nbclient
import pytest
from playwright.sync_api import Browser

from tests.capture.running import plain
from tests.e2e.notebooks import executed, frames
from tfdoctor.recording import Manifest, Recording

LOAD = "%load_ext tfdoctor\n%config InteractiveShell.colors = 'nocolor'"

COLORS = re.compile(r"\x1b\[[0-9;]*m")


def said(cell: Any, kind: str = "stderr") -> str:
    """Return what a cell printed."""
    texts = [output["text"] for output in cell.outputs if output.get("name") == kind]
    return "".join(texts).replace("\r\n", "\n")


def errors(cell: Any) -> list[str]:
    """Return the tracebacks that a cell shows."""
    failed = [output for output in cell.outputs if output.output_type == "error"]
    return [COLORS.sub("", "\n".join(error.traceback)) for error in failed]


def value(cell: Any) -> tuple[int, str] | None:
    """Return the number and the text of a cell's value, if it shows one."""
    shown = [output for output in cell.outputs if output.output_type == "execute_result"]
    return (shown[0].execution_count, shown[0].data["text/plain"]) if shown else None


def manifest(path: Path) -> Manifest:
    found = Recording.open(path).manifest
    assert found is not None
    return found


def test_ipython_is_imported_by_the_extension_alone(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, tfdoctor\ntfdoctor.record, tfdoctor.Recorder\nprint('IPython' in sys.modules)\n"
        "tfdoctor.load_ipython_extension\nprint('IPython' in sys.modules)\n"
    )
    assert plain(script).stdout == "False\nTrue\n"


WORKS = {
    "help": "print(get_ipython().object_inspect('%%tfdoctor')['docstring'])",
    "value": "%%tfdoctor run --out 'my run' --steps 3 --sample-every 0\n\nseen = 5\nseen + 1",
    "after": "print(_, run.path.name, run.recording.manifest.plan.steps)",
    "silent": "%%tfdoctor\nseen;  # 'x'",
    "statements": "%%tfdoctor\n\n# a comment alone",
    "commands": "%%tfdoctor\n!echo from a shell\n%time 1 + 1",
    "raises": "%%tfdoctor bad --out bad\n\ndef broken():\n    raise ValueError(3)\nbroken()",
    "later": "print(bad.recording.manifest.outcome.error)\nbroken()",
    "exits": "%%tfdoctor --out exits\nraise SystemExit(4)",
    "no python": "%%tfdoctor\nif seen",
    "returns": "%%tfdoctor\nreturn 3",
}


REFUSED = {
    "%%tfdoctor\n": "%%tfdoctor is a cell magic, but the cell body is empty.",
    "%%tfdoctor\n \n\n": "%%tfdoctor has nothing to record: write the training below it.",
    "%%tfdoctor --stepz 3\nran": "%%tfdoctor: unrecognized arguments: --stepz; %%tfdoctor? lists the options.",
    "%%tfdoctor --step 3\nran": "%%tfdoctor: unrecognized arguments: --step; %%tfdoctor? lists the options.",
    "%%tfdoctor --steps x\nran": (
        "%%tfdoctor: argument --steps: invalid int value: 'x'; %%tfdoctor? lists the options."
    ),
    "%%tfdoctor --steps 0\nran": "The number of steps to trace must be 1 or more.",
    "%%tfdoctor --seconds nan\nran": "The time to trace must be longer than zero, and finite.",
    "%%tfdoctor --out 'x\nran": "%%tfdoctor: No closing quotation; %%tfdoctor? lists the options.",
    "%%tfdoctor 1x\nran": "%%tfdoctor: '1x' is not a name for a variable; %%tfdoctor? lists the options.",
    "%%tfdoctor --out .\nran": ". is not empty: choose another folder, or remove it first.",
    "%%tfdoctor\nimport asyncio\nawait asyncio.sleep(0)": (
        "%%tfdoctor cannot run a cell with await: use `with tfdoctor.record():` around the training."
    ),
}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """Return the cells as one kernel has executed them, and its folder."""
    folder = tmp_path_factory.mktemp("notebook")
    cells = [*WORKS.values(), *(cell.replace("\nran", "\nopen('ran', 'w')") for cell in REFUSED)]
    book = executed(folder, LOAD, *cells, failing=True)
    return dict(zip([*WORKS, *REFUSED], book.cells[1:], strict=True)), folder


def test_what_cannot_be_recorded_is_one_sentence_and_nothing_runs(kernel: tuple[dict[str, Any], Path]) -> None:
    cells, folder = kernel
    assert {cell: said(cells[cell]) for cell in REFUSED} == {
        cell: f"UsageError: {sentence}\n" for cell, sentence in REFUSED.items()
    }
    assert not any(errors(cells[cell]) for cell in REFUSED)
    assert sorted(path.name for path in folder.iterdir()) == ["bad", "exits", "ipython", "my run", "runs"]


def test_help_lists_every_option_of_record(kernel: tuple[dict[str, Any], Path]) -> None:
    text = said(kernel[0]["help"], "stdout")
    assert "%%tfdoctor [--out DIR] [--steps N]" in text
    for option in ("name ", "--out DIR ", "--steps N ", "--warmup N ", "--seconds S ", "--sample-every MS "):
        assert f"\n  {option}" in text


def test_a_cell_shows_its_value_under_its_own_number(kernel: tuple[dict[str, Any], Path]) -> None:
    cells, folder = kernel
    number = list(WORKS).index("value") + 2
    assert value(cells["value"]) == (number, "6")
    assert said(cells["after"], "stdout") == "6 my run 3\n"
    found = manifest(folder / "my run")
    assert found.command == (f"In [{number}]:1",)
    assert found.samplers == ()


def test_a_cell_that_trains_nothing_shows_where_its_time_went(kernel: tuple[dict[str, Any], Path]) -> None:
    for name in ("value", "silent", "statements"):
        line = said(kernel[0][name])
        assert line.startswith("tfdoctor: no training step was seen, recorded the block in ")
        assert len(frames(kernel[0][name])) == 1


def test_a_semicolon_and_a_statement_show_no_value(kernel: tuple[dict[str, Any], Path]) -> None:
    assert [value(kernel[0][name]) for name in ("silent", "statements")] == [None, None]


def test_commands_of_ipython_work_inside(kernel: tuple[dict[str, Any], Path]) -> None:
    cell = kernel[0]["commands"]
    assert said(cell, "stdout").startswith("from a shell\nCPU times:")
    assert value(cell) == (list(WORKS).index("commands") + 2, "2")


def test_an_error_is_shown_once_at_the_cells_own_lines(kernel: tuple[dict[str, Any], Path]) -> None:
    cells, folder = kernel
    number = list(WORKS).index("raises") + 2
    (shown,) = errors(cells["raises"])
    assert "tfdoctor" not in shown
    places = re.findall(r"^Cell In\[(\d+)\], line (\d+)", shown, re.MULTILINE)
    assert places == [(str(number), "5"), (str(number), "4")]
    assert shown.endswith("ValueError: 3")
    assert manifest(folder / "bad").outcome.error == "ValueError: 3"
    assert said(cells["later"], "stdout") == "ValueError: 3\n"
    (again,) = errors(cells["later"])
    assert f"Cell In[{number}], line 4, in broken()" in again


def test_a_cell_that_exits_and_one_that_is_no_python_fail_as_usual(kernel: tuple[dict[str, Any], Path]) -> None:
    cells, folder = kernel
    assert [error.splitlines()[-1] for error in errors(cells["exits"])] == ["SystemExit: 4"]
    assert manifest(folder / "exits").outcome.exit_code == 4
    (shown,) = errors(cells["no python"])
    assert "line 2\n    if seen\n" in shown
    (returns,) = errors(cells["returns"])
    assert returns.endswith("SyntaxError: 'return' outside function\n")
    assert not said(cells["no python"]) + said(cells["returns"])


def test_a_failing_cell_stops_a_run_of_all_cells(tmp_path: Path) -> None:
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="ZeroDivisionError"):
        executed(tmp_path, LOAD, "%%tfdoctor --out out\n1 / 0", "open('never', 'w')")
    assert not (tmp_path / "never").exists()
    assert manifest(tmp_path / "out").finished


TRAINS = (
    """import keras
import tensorflow as tf


def double(x, y):
    return x * 2.0, y
""",
    LOAD,
    """%%tfdoctor run --out first --warmup 3 --steps 5
x = tf.random.stateless_uniform([80, 8], seed=[1, 2])
data = tf.data.Dataset.from_tensor_slices((x, x)).map(double).batch(4)
model = keras.Sequential([keras.layers.Dense(8)])
model.compile('adam', 'mse')
len(model.fit(data, verbose=0).epoch)""",
    """%%tfdoctor --out second --warmup 2 --steps 4
for i, (x, y) in enumerate(data.repeat()):
    model.train_on_batch(x, y)
    if i == 9:
        raise KeyError('broken')""",
    "print(run.recording.manifest.window.steps)",
    """import tfdoctor
with tfdoctor.record('out') as block:
    x = tf.random.stateless_uniform([400, 8], seed=[1, 2])
    data = tf.data.Dataset.from_tensor_slices((x, x)).map(double).batch(4)
    model = keras.Sequential([keras.layers.Dense(8)])
    model.compile('adam', 'mse')
    model.fit(data, verbose=0)
""",
    "block",
    "block.show()\nprint(repr(block))",
)
"""Cells with the magic, and then a block of `tfdoctor.record`."""

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "record-from-python.md"
HOW_TO = re.findall(r"^```i?python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """Return a notebook that has trained, with the cells of the how-to behind, and its folder."""
    folder = tmp_path_factory.mktemp("trains")
    return executed(folder, *TRAINS, *HOW_TO, failing=True), folder


@pytest.mark.tensorflow
def test_training_is_recorded_and_its_report_shown_even_after_an_error(trained: tuple[Any, Path]) -> None:
    book, folder = trained
    first, second, last = book.cells[2:5]
    for cell, name, steps in ((first, "first", 5), (second, "second", 4)):
        (page,) = frames(cell)
        assert "step takes" in page
        assert f"tfdoctor: traced {steps} steps, recorded in {folder / name}\n" in said(cell)
        assert frames(last) == []
        assert cell.outputs[-1]["data"]["text/html"] == page  # below everything else
    assert value(first) == (3, "1")
    (shown,) = errors(second)
    assert re.findall(r"^Cell In\[(\d+)\], line (\d+)", shown, re.MULTILINE) == [("4", "5")]
    assert said(last, "stdout") == "5\n"


@pytest.mark.tensorflow
def test_source_lines_are_those_of_the_cell_with_its_first_line(trained: tuple[Any, Path]) -> None:
    recording = Recording.open(trained[1] / "first")
    assert recording.manifest is not None
    assert recording.manifest.steps.at == ("In [3]", 6)
    assert recording.program is not None
    mapped = next(d for d in recording.program.datasets if d.kind == "_MapDataset")
    assert mapped.function is not None
    assert (mapped.at, mapped.function.at) == (("In [3]", 3), ("In [1]", 5))


# A block of `tfdoctor.record`


@pytest.mark.tensorflow
def test_a_notebook_shows_the_whole_report_in_a_frame(trained: tuple[Any, Path]) -> None:
    book, _ = trained
    for cell in book.cells[6:8]:
        (frame,) = frames(cell)
        assert len(cell.outputs) == 1 + ("print" in cell.source)
        assert 'sandbox="allow-scripts"' in frame
        assert frame.count("<iframe") == 1
        assert "step takes" in frame


@pytest.mark.tensorflow
def test_one_report_of_a_notebook_carries_the_code_of_charts(trained: tuple[Any, Path]) -> None:
    """So a notebook with three reports fits into a commit; Jupyter drops messages beyond 3 MB in 3 s."""
    book, _ = trained
    first, *others = (page for cell in book.cells[: len(TRAINS)] for page in frames(cell))
    assert 550_000 < len(first.encode()) < 900_000
    assert len(others) == 3
    assert all(len(page.encode()) < 350_000 for page in others)
    three = [cell for cell in book.cells if frames(cell)][:3]
    assert sum(len(json.dumps(cell)) for cell in three) < 1_500_000


@pytest.mark.tensorflow
def test_a_viewer_that_shows_no_frames_has_the_whole_report(trained: tuple[Any, Path]) -> None:
    for cell in (trained[0].cells[2], trained[0].cells[6]):
        data = next(output["data"] for output in cell.outputs if "text/html" in output.get("data", {}))
        assert "step takes" in data["text/markdown"]
        assert "<details><summary>Healthy" in data["text/markdown"]
        _, left = data["text/html"].split("</iframe>")
        assert "step takes" in left


@pytest.mark.tensorflow
def test_cells_are_called_by_their_numbers(trained: tuple[Any, Path]) -> None:
    book, folder = trained
    recording = Recording.open(folder / "out")
    assert recording.manifest is not None
    assert recording.manifest.command == ("In [6]:2",)
    assert recording.manifest.steps.at == ("In [6]", 7)
    assert recording.program is not None
    mapped = next(d for d in recording.program.datasets if d.kind == "_MapDataset")
    assert mapped.function is not None
    assert (mapped.at, mapped.function.at) == (("In [6]", 4), ("In [1]", 5))
    assert "In [6]:2" in frames(book.cells[6])[0]


@pytest.mark.tensorflow
def test_a_browser_draws_it_and_the_notebook_is_not_touched(
    browser: Browser, trained: tuple[Any, Path], tmp_path: Path
) -> None:
    page = tmp_path / "notebook.html"
    ours = [frames(trained[0].cells[at])[0] for at in (6, 2)]  # the second one carries plotly.js
    page.write_text(f"<!DOCTYPE html><p>mine</p>{''.join(ours)}", encoding="utf-8")
    tab, said = browser.new_page(viewport={"width": 900, "height": 900}), []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.goto(page.as_uri())
    tab.frame_locator("iframe").nth(1).locator("html[data-charts=drawn]").wait_for(state="attached")
    report = tab.frame_locator("iframe").first
    report.locator("html[data-charts=drawn]").wait_for(state="attached")
    assert report.locator(".js-plotly-plot .main-svg").count() >= 3
    assert "step takes" in report.locator("main").inner_text()
    box = tab.locator("iframe").first.bounding_box()
    assert box is not None
    assert (box["width"] > 800, box["height"]) == (True, 720)
    assert tab.evaluate("getComputedStyle(document.querySelector('p')).fontFamily") != report.locator(
        "body"
    ).evaluate("body => getComputedStyle(body).fontFamily")
    assert said == []
    tab.close()


@pytest.mark.tensorflow
def test_the_how_to_does_what_it_says(trained: tuple[Any, Path]) -> None:
    book, folder = trained
    cells = book.cells[len(TRAINS) :]
    assert [errors(cell) for cell in cells] == [[]] * len(HOW_TO)
    assert [len(frames(cell)) for cell in cells] == [0, 0, 1, 0, 1, 1, 0, 0, 0]
    assert cells[-2].outputs[-1]["text"] == "10\n"
    for recording in re.findall(r"runs/[\w-]+", "".join(HOW_TO)):
        assert manifest(folder / recording).finished
