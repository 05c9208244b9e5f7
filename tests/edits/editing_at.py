"""Edits one marked line with an example of its own."""

import ast

from tests.edits.editing import KINDS
from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.splice import spliced


def edited_at(edit_id: str, text: str, marked: str, example: str = "") -> str:
    """Return a text after one edit of the first line with the mark; the result is Python."""
    number = 1 + next(at for at, line in enumerate(text.splitlines()) if marked in line)
    new = spliced(text, KINDS[edit_id](SyntaxTree(text), number, example))
    ast.parse(new)
    return new
