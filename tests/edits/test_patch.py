"""Patches of many kinds of files, applied by git itself: byte for byte as intended, and valid Python."""

import ast
import codecs
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.edits.editing import KINDS, git_apply
from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.patch import FileChange, unified
from tfdoctor.edits.source import SourceFile
from tfdoctor.edits.splice import Declined, Splice, before_and_after, overlapping, spliced

STATEMENTS = st.sampled_from(
    [
        "d = d.map(f)",
        "d = d.map(f,)  # slow",
        "d = d.map(\n    f,\n)",
        "d = d.map(\n    lambda x: (x, x)  # why\n)",
        "d = (\n    d.map(f)\n    .batch(2)\n)",
        "d = d.map(f) \\\n    .batch(4)",
        "if d:\n    d = d.batch(8)  # é",
        "def made(d):\n\td = d.batch(8)\n\treturn d",
        "model.compile('adam', 'mse', run_eagerly=True)",
        "x = '''d = d.map(\r\n'''",
        "y = 1; d = d.interleave(f)",
        "# d.map(f)",
        "",
        "@tf.function\ndef step(x):\n    with tf.GradientTape() as tape:\n        return x",
        "d = d / max(d)",
        "x = d / 2\nd = x + d\nwith tf.GradientTape() as tape:\n    y = x @ d\ntape.gradient(y, x)",
        "def again(n):\n    return again(n - 1)\nmodel = again(2)\nmodel.compile('adam', 'mse')\nmodel.fit(d)",
        "def step(a, b):\n    with tf.GradientTape() as tape:\n        return step(b, a)",
        "for b in d:\n    a = b\n    b = a\n    with tf.GradientTape() as tape:\n        b(a)",
    ]
)

DECLARED = ["", "utf-8", "latin-1", "cp1252", "utf-8-sig"]


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """A file of Python in an encoding, with line ends, or none at its end."""
    encoding = draw(st.sampled_from(DECLARED))
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


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"# coding: nonsense\n", "cannot be read as Python"),
        (b"a = '\xff'\n", "cannot be read as Python"),
        (b"# coding: latin-1\na = '\xff'\n", ""),
        (b"# coding: utf-16\n", "cannot be read as Python"),
        (b"# coding: iso2022_jp\na = 1  # \x1b(B\n", "would change other parts"),
    ],
)
def test_a_file_that_would_change_elsewhere_is_declined(data: bytes, words: str) -> None:
    reason = ""
    try:
        assert SourceFile.read("a.py", data).data == data
    except Declined as declined:
        reason = str(declined)
    assert words in reason
    assert bool(words) == bool(reason)
