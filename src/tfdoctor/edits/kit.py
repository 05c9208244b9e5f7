"""What the edits of a rule are written with: ``from tfdoctor.edits.kit import *``."""

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from tfdoctor.edits.arguments import setting, written
from tfdoctor.edits.chains import (
    assigned,
    begun_on,
    calls_of,
    exchanged,
    in_block,
    next_call,
    only_call,
    rebound,
    target,
)
from tfdoctor.edits.loop_bodies import Loop
from tfdoctor.edits.module import (
    SyntaxTree,
    dotted,
    imports_above,
    last_name,
    method_of,
    named,
    positional,
    receiver,
    root_name,
)
from tfdoctor.edits.names import given, is_label, unused_name
from tfdoctor.edits.splice import Declined, Splice, in_example, insert, known, only
from tfdoctor.edits.values import Values

__all__ = [
    "Declined", "Iterator", "Loop", "Sequence", "Splice", "SyntaxTree", "Values", "assigned", "begun_on",
    "calls_of", "cst", "dotted", "exchanged", "given", "imports_above", "in_block", "in_example", "insert",
    "is_label", "known", "last_name", "method_of", "named", "next_call", "only", "only_call", "positional", "re",
    "rebound", "receiver", "root_name", "setting", "target", "unused_name", "written",
]  # fmt: skip
