"""What the edits of a rule are written with: ``from tfdoctor.edits.kit import *``."""

import re

import libcst as cst

from tfdoctor.edits.arguments import setting, written
from tfdoctor.edits.chains import assigned, calls_of, exchanged, in_block, next_call, only_call, rebound
from tfdoctor.edits.module import SyntaxTree, imports_above
from tfdoctor.edits.splice import Declined, Splice, in_example, insert, known, only
from tfdoctor.edits.syntax import dotted, last_name, method_of, named, positional, receiver
from tfdoctor.edits.values import keras_class, made_by

__all__ = [
    "Declined", "Splice", "SyntaxTree", "assigned", "calls_of", "cst", "dotted", "exchanged", "imports_above",
    "in_block", "in_example", "insert", "keras_class", "known", "last_name", "made_by", "method_of", "named",
    "next_call", "only", "only_call", "positional", "re", "rebound", "receiver", "setting", "written",
]  # fmt: skip
