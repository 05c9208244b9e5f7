"""Notebooks in a real kernel: what `%%tfdoctor` and `tfdoctor.record` show, record and refuse."""

from playwright.sync_api import Browser

from tests.e2e.kit import *
from tests.e2e.notebooks import executed, frames

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


def shown(cell: Any) -> dict[str, object]:
    """Return what a cell shows, without times and the lines of tracebacks that depend on the Python."""
    timeless = [re.sub(r"\b[\d.]+ \S?s\b", "… s", said(cell, kind)) for kind in ("stdout", "stderr")]
    found: dict[str, object] = {
        "value": value(cell),
        "prints": timeless[0].splitlines(),
        "says": timeless[1].splitlines(),
    }
    failed = [
        re.findall(r"Cell In\[\d+\], line \d+.*|^    if .*|^\w+: .*", one, re.MULTILINE) for one in errors(cell)
    ]
    ours = ["tfdoctor is in the traceback" for one in errors(cell) if "tfdoctor" in one]
    found |= {"fails": [one for lines in failed for one in lines] + ours, "pages": len(frames(cell))}
    return {what: one for what, one in found.items() if one}


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


REFUSED = [
    "%%tfdoctor\n",
    "%%tfdoctor\n \n\n",
    *(
        f"%%tfdoctor {words}\nopen('ran', 'w')"
        for words in (
            "--stepz 3",
            "--step 3",
            "--steps x",
            "--steps 0",
            "--seconds nan",
            "--out 'x",
            "1x",
            "--out .",
        )
    ),
    "%%tfdoctor\nimport asyncio\nawait asyncio.sleep(0)",
]


def of_cell(folder: Path) -> object:
    """Return what a cell recorded: its place, the number of samplers, and how it ended."""
    found = manifest(folder)
    return found.command, len(found.samplers), found.outcome.exit_code, found.outcome.error


def test_what_cells_show_and_record(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    """Each shows its value under its own number, and an error once at its own lines; what is refused never runs."""
    stops = "%%tfdoctor --out out\n1 / 0", "open('never', 'w')"
    book = executed(tmp_path, LOAD, *WORKS.values(), *REFUSED, last=stops)
    _, *cells = book.cells[: -len(stops)]
    names = [*WORKS, *(cell.splitlines()[0] + " …" * (cell == REFUSED[1]) for cell in REFUSED[:-1]), "await"]
    told = Told()
    told[shown] = {name: (cell,) for name, cell in zip(names, cells, strict=True)}
    told[of_cell] = {f"recorded in {name}": tmp_path / name for name in ("my run", "bad", "exits")}
    told.add("files", lambda: sorted(path.name for path in tmp_path.iterdir()))
    text = "\n".join(told.lines()).replace(str(tmp_path), "FOLDER")
    golden("notebook.txt", re.sub(r"notebook-[\d-]+", "notebook-DATE", text))
    assert book.metadata["failed"] == "ZeroDivisionError"  # it stops a run of all cells
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
    x = tf.random.stateless_uniform([160, 8], seed=[1, 2])
    data = tf.data.Dataset.from_tensor_slices((x, x)).map(double).batch(4)
    model.fit(data, verbose=0)
""",
    "block",
    "block.show()\nprint(repr(block))",
)
"""Cells with the magic, and then a block of `tfdoctor.record`."""

PAGE = ROOT / "docs" / "how-to" / "record-from-python.md"
HOW_TO = re.findall(r"^```i?python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """Return a notebook that has trained, with the cells of the how-to behind, and its folder."""
    folder = tmp_path_factory.mktemp("trains")
    return executed(folder, *TRAINS, *HOW_TO), folder


def page_of(cell: Any) -> str:
    """Return the one page that a cell shows."""
    (page,) = frames(cell)
    return page


@pytest.mark.tensorflow
def test_training_is_recorded_and_its_report_shown_even_after_an_error(trained: tuple[Any, Path]) -> None:
    book, folder = trained
    first, second, last = book.cells[2:5]
    for cell, name, steps in ((first, "first", 5), (second, "second", 4)):
        assert "step takes" in page_of(cell)
        assert f"tfdoctor: traced {steps} steps, recorded in {folder / name}\n" in said(cell)
        assert cell.outputs[-1]["data"]["text/html"] == page_of(cell)  # below everything else
    assert (value(first), value(last), frames(last), said(last, "stdout")) == ((3, "1"), None, [], "5\n")
    (failed,) = errors(second)
    assert re.findall(r"^Cell In\[(\d+)\], line (\d+)", failed, re.MULTILINE) == [("4", "5")]


@pytest.mark.tensorflow
@cases(("first", 3, 1, 6, 3), ("out", 6, 2, 5, 4))
def test_source_lines_are_those_of_the_cell(
    name: str, cell: int, begins: int, fit: int, maps: int, trained: tuple[Any, Path]
) -> None:
    """A cell is called by its number, and its lines count from its first."""
    book, folder = trained
    recording = Recording.open(folder / name)
    assert recording.manifest is not None
    assert recording.manifest.command == (f"In [{cell}]:{begins}",)
    assert recording.manifest.steps.at == (f"In [{cell}]", fit)
    assert recording.program is not None
    mapped = next(d for d in recording.program.datasets if d.kind == "_MapDataset")
    assert mapped.function is not None
    assert (mapped.at, mapped.function.at) == ((f"In [{cell}]", maps), ("In [1]", 5))
    assert f"In [{cell}]:{begins}" in page_of(book.cells[cell - 1 + (cell > 3)])


# A block of `tfdoctor.record`


@pytest.mark.tensorflow
def test_a_notebook_shows_the_whole_report_in_a_frame(trained: tuple[Any, Path]) -> None:
    for cell in trained[0].cells[6:8]:
        frame = page_of(cell)
        assert len(cell.outputs) == 1 + ("print" in cell.source)
        assert ('sandbox="allow-scripts"' in frame, frame.count("<iframe"), "step takes" in frame) == (
            True,
            1,
            True,
        )


@pytest.mark.tensorflow
def test_one_report_of_a_notebook_carries_the_code_of_charts(trained: tuple[Any, Path]) -> None:
    """So a notebook with three reports fits into a commit; Jupyter drops messages beyond 3 MB in 3 s."""
    book, _ = trained
    first, *others = (page for cell in book.cells[: len(TRAINS)] for page in frames(cell))
    assert 550_000 < len(first.encode()) < 900_000
    assert [len(page.encode()) < 350_000 for page in others] == [True] * 3
    three = [cell for cell in book.cells if frames(cell)][:3]
    assert sum(len(json.dumps(cell)) for cell in three) < 1_500_000


@pytest.mark.tensorflow
def test_a_viewer_that_shows_no_frames_has_the_whole_report(trained: tuple[Any, Path]) -> None:
    for cell in (trained[0].cells[2], trained[0].cells[6]):
        data = next(output["data"] for output in cell.outputs if "text/html" in output.get("data", {}))
        assert "<details><summary>Healthy" in data["text/markdown"]
        for text in (data["text/markdown"], data["text/html"].split("</iframe>")[1]):
            assert "step takes" in text


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
    reports = [tab.frame_locator("iframe").nth(number) for number in (1, 0)]
    for report in reports:
        report.locator("html[data-charts=drawn]").wait_for(state="attached")
    assert report.locator(".js-plotly-plot .main-svg").count() >= 3
    assert "step takes" in report.locator("main").inner_text()
    box = tab.locator("iframe").first.bounding_box()
    assert box is not None
    assert (box["width"] > 800, box["height"]) == (True, 720)
    font = "body => getComputedStyle(body).fontFamily"
    assert tab.locator("p").evaluate(font) != report.locator("body").evaluate(font)
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
