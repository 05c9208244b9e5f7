"""What the edits of a rule are written with: ``from tfdoctor.edits.kit import *``."""

import ast
import re

from tfdoctor.edits.calls import (
    assigned,
    calls_of,
    exchanged,
    in_block,
    next_call,
    only_call,
    rebound,
    setting,
    written,
)
from tfdoctor.edits.values import attributes, keras_class, made_by
from tfdoctor.source_code.splice import Declined, Splice, in_example, insert, known, only
from tfdoctor.source_code.syntax import (
    Function,
    arguments,
    dotted,
    is_number,
    is_text,
    last_name,
    method_of,
    named,
    own_methods,
    receiver,
    spread,
    tail,
)
from tfdoctor.source_code.tree import SyntaxTree, imports_above, place

__all__ = [
    "Declined", "Function", "Splice", "SyntaxTree", "arguments", "assigned", "ast", "attributes", "calls_of",
    "dotted", "exchanged", "imports_above", "in_block", "in_example", "insert", "is_number", "is_text",
    "keras_class", "known", "last_name", "made_by", "method_of", "named", "next_call", "only", "only_call",
    "own_methods", "place", "re", "rebound", "receiver", "setting", "spread", "tail", "written",
]  # fmt: skip
