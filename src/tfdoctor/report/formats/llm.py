"""The report for the context of a language model: plain text with lines, numbers and edits, printed.

It has at most LIMIT bytes. Parts that do not fit are left out, and the last line says so: first come the headline
and the parts of run and step, then each finding with its edit, then the profile and what was checked.
"""

import re

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.report.formats.md import HELD, PART, fenced, made
from tfdoctor.report.page import page
from tfdoctor.report.template import fill

# Bytes: 4,000 tokens of three bytes each. Tokens of English prose have four bytes, those of code and numbers about
# three (https://platform.openai.com/tokenizer).
LIMIT = 12_000
ROWS = 3  # Rows of a table, and lines of a phase: the longest come first
PROFILE_ROWS = 8

CUT = "\n… Parts were left out: the JSON report has them.\n"


def render(diagnosis: Diagnosis) -> str:
    """Return the report, the most important parts first."""
    shown = page(diagnosis)
    names = {"part": PART, "rows": ROWS, "profile_rows": PROFILE_ROWS, "fenced": made(fenced), "zip": zip}
    text = fill("report.llm.jinja", str, page=shown, d=shown.diagnosis, **names)
    room, kept, cut = LIMIT - len(CUT.encode()), list[str](), ""
    for part in text.split(PART):
        block = re.sub(r"\n{2,}", "\n", part).strip().replace(HELD, "\n")
        size = len(block.encode()) + 2
        if block and size > room:
            cut = CUT
        elif block:
            room -= size
            kept.append(block)
    return "\n\n".join(kept) + "\n" + cut
