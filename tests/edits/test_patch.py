"""Patches of many kinds of files, applied by git itself: byte for byte as intended, and valid Python."""

import codecs

from hypothesis import HealthCheck

from tests.edits.kit import *
from tfdoctor.edits.patch import FileChange, replaced, unified
from tfdoctor.edits.source import SourceFile
from tfdoctor.source_code.splice import before_and_after, overlapping

STATEMENTS = st.sampled_from(
    [
        *("d = d.map(f)", "d = d.map(f,)  # slow", "d = d.map(\n    f,\n)", "# d.map(f)", "", "d = d / max(d)"),
        *("d = d.map(\n    lambda x: (x, x)  # why\n)", "d = (\n    d.map(f)\n    .batch(2)\n)"),
        *("d = d.map(f) \\\n    .batch(4)", "if d:\n    d = d.batch(8)  # é", "x = '''d = d.map(\r\n'''"),
        *("def made(d):\n\td = d.batch(8)\n\treturn d", "model.compile('adam', 'mse', run_eagerly=True)"),
        *("y = 1; d = d.interleave(f)", "def again(d):\n\t# ü\x0cß\n\treturn d.batch(\n\t\t8,\n\t)  # ü\x0cß"),
        "@tf.function\ndef step(x):\n    with tf.GradientTape() as tape:\n        return x",
        "x = d / 2\nd = x + d\nwith tf.GradientTape() as tape:\n    y = x @ d\ntape.gradient(y, x)",
        "def again(n):\n    return again(n - 1)\nmodel = again(2)\nmodel.compile('adam', 'mse')\nmodel.fit(d)",
        "def step(a, b):\n    with tf.GradientTape() as tape:\n        return step(b, a)",
        "for b in d:\n    a = b\n    b = a\n    with tf.GradientTape() as tape:\n        b(a)",
    ]
)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """A file of Python in an encoding, with line ends, or none at its end."""
    encoding = draw(st.sampled_from(["", "utf-8", "latin-1", "cp1252", "utf-8-sig"]))
    head = [f"# -*- coding: {encoding} -*-"] if encoding and encoding != "utf-8-sig" else []
    parts = ["import tensorflow as tf", *draw(st.lists(STATEMENTS, min_size=1, max_size=8))]
    text = "\n".join([*head, *parts]) + draw(st.sampled_from(["", "\n", "\n\n"]))
    ends = draw(st.sampled_from(["\n", "\r\n"]))
    return text.replace("\r\n", "\n").replace("\n", ends).encode(encoding or "utf-8")


def all_edits(source: SourceFile) -> str:
    """Make all edits of all lines that do not overlap."""
    module, together = SyntaxTree(source.text), set[Splice]()
    for line in range(len(module.lines.starts) + 1):
        for kind in KINDS.values():
            try:
                splices = kind(module, line, "")
            except (Declined, RecursionError):  # names stand for each other
                continue
            before_and_after(source.text, splices)
            if not overlapping(together | set(splices)):
                together |= set(splices)
    return spliced(source.text, together)


@settings(max_examples=60)
@given(data=files())
def test_git_applies_all_edits_of_a_file(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    source = SourceFile.read("a b/train.py", data)
    after = source.encoded(all_edits(source))
    folder = tmp_path_factory.mktemp("patched")
    file = folder / source.path
    file.parent.mkdir()
    file.write_bytes(data)
    patch = unified([FileChange(source.path, data, after)])
    assert bool(patch) == (after != data)
    if patch:
        git_apply(patch, folder)
    assert file.read_bytes() == after
    ast.parse(after)
    bom = data.startswith(codecs.BOM_UTF8)
    assert after.startswith(codecs.BOM_UTF8) == bom
    assert after.count(b"\r\n") == after.count(b"\n") * (b"\r\n" in data)


def test_two_files_are_one_patch(tmp_path: Path) -> None:
    changes = [FileChange("train.py", b"a = 1\r\n", b"a = 2\r\n"), FileChange("data/input.py", b"b = 1", b"b = 2")]
    for change in changes:
        (tmp_path / change.path).parent.mkdir(exist_ok=True)
        (tmp_path / change.path).write_bytes(change.before)
    git_apply(unified(changes), tmp_path)
    assert [(tmp_path / change.path).read_bytes() for change in changes] == [b"a = 2\r\n", b"b = 2"]


def test_a_patch_of_nothing_is_empty() -> None:
    assert unified([]) == b""
    assert unified([FileChange("train.py", b"a = 1\n", b"a = 1\n")]) == b""


@cases(
    *((data, "cannot be read as Python") for data in (b"# coding: nonsense\n", b"# coding: hex\n00\n")),
    *((data, "cannot be read as Python") for data in (b"a = '\xff'\n", b"# coding: utf-16\n")),
    (b"# coding: iso2022_jp\na = 1  # \x1b(B\n", "would change other parts"),
)
def test_a_file_that_would_change_elsewhere_is_declined(data: bytes, why: str) -> None:
    with pytest.raises(Declined, match=why):
        SourceFile.read("a.py", data)


AUTO = "num_parallel_calls=tf.data.AUTOTUNE"


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=st.text("ab\r\n\té", min_size=1, max_size=40), after=st.text("ab\r\n\té", min_size=1, max_size=40))
def test_a_diff_is_what_git_reads(tmp_path: Path, before: str, after: str) -> None:
    if before == after:
        return
    (tmp_path / "x.py").write_bytes(before.encode())
    git_apply(unified([FileChange("x.py", before.encode(), after.encode())]), tmp_path)
    assert (tmp_path / "x.py").read_bytes() == after.encode()


MAPS = "import tensorflow as tf\nd = d.map(f)\n"


@cases(
    ("jobs", ["train.py", "input/pipeline.py"], ["train.py", "input/pipeline.py"]),
    ("proj", ["data.py", "proj/data.py"], ["proj/data.py"]),  # a package that is called like the folder
)
def test_it_applies_in_the_folder_of_the_run_within_a_repository(
    name: str, files: list[str], asked: list[str], tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True, timeout=60)
    for file in files:
        (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name / file).write_text(MAPS)
    findings = [finding(one, remedy("parallel-map", one, 2)) for one in asked]
    _, patch = made(recorded(tmp_path / name, asked), *findings)
    git_apply(patch, tmp_path / name)
    expected = {file: MAPS.replace("f)", f"f, {AUTO})") if file in asked else MAPS for file in files}
    assert {file: (tmp_path / name / file).read_text() for file in files} == expected


@each("train.py", "linked/real.py", "elsewhere.py")
def test_a_link_is_followed_to_the_file_that_git_changes(link: str, tmp_path: Path) -> None:
    folder, outside = tmp_path / "run", tmp_path / "real.py"
    real = folder / "code" / "real.py"
    real.parent.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", folder], check=True, timeout=60)
    for name, target in (("train.py", real), ("linked", real.parent), ("elsewhere.py", outside)):
        (folder / name).symlink_to(target)
    for path in (real, outside):
        path.write_text(MAPS)
    results, patch = made(recorded(folder, [link]), finding("a", remedy("parallel-map", link, 2)))
    ((reason,), elsewhere) = missing(results), link == "elsewhere.py"
    assert ("outside the folder" in reason, bool(reason), not patch) == (elsewhere,) * 3
    if patch:
        git_apply(patch, folder)
    assert (AUTO in real.read_text(), (folder / "train.py").is_symlink()) == (not elsewhere, True)


texts = st.lists(st.sampled_from(["a = 1", "é", "", "    x(\N{GRINNING FACE})"]), max_size=6).flatmap(
    lambda lines: st.sampled_from(["\n", "\r\n"]).map(lambda end: end.join(lines))
)


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, list[Splice]]:
    """A text and splices of it that do not overlap; several may add at one place."""
    text = draw(texts)
    places = [n for n in range(len(text) + 1) if text[n - 1 : n + 1] != "\r\n"]
    edges = sorted(draw(st.lists(st.sampled_from(places), max_size=6)))
    new = st.sampled_from(["", "y", "\nz"])
    found = [Splice(start, end, rank, draw(new)) for rank, (start, end) in enumerate(list(pairwise(edges))[::2])]
    return text, found


def applied(text: str, splices: list[Splice]) -> str:
    """Replace by lines and columns, the last place first."""
    starts = [0, *(number for number, character in enumerate(text, 1) if character == "\n")]
    for one in reversed(replaced(text, splices)):
        start, end = (starts[line - 1] + column - 1 for line, column in (one.start, one.end))
        text = text[:start] + one.text + text[end:]
    return text


@given(edits())
def test_replacements_do_what_splices_do(edit: tuple[str, list[Splice]]) -> None:
    text, splices = edit
    assert applied(text, splices) == spliced(text, splices)
