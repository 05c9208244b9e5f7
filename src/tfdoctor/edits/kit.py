"""What edits are written with: ``from tfdoctor.edits.kit import *``."""

import ast
import re

from tfdoctor.edits.calls import *
from tfdoctor.edits.values import *
from tfdoctor.recording.program import ProgramRecord
from tfdoctor.source_code.splice import *
from tfdoctor.source_code.syntax import *
from tfdoctor.source_code.tree import *

__all__ = [
    "MAKERS",
    "TENSORFLOW",
    "TRANSFORMATIONS",
    "Declined",
    "Function",
    "ProgramRecord",
    "Splice",
    "SyntaxTree",
]
__all__ += ["appended", "arguments", "assigned", "assigned_before", "ast", "attributes", "calls_of", "calls_on"]
__all__ += ["dotted", "exchanged", "given", "imports_above", "in_block", "in_example", "insert", "is_number"]
__all__ += ["is_tensor", "is_text", "keras_class", "known", "last_name", "made_by", "mapped_before", "method_of"]
__all__ += ["methods_of", "named", "next_call", "only", "only_call", "own_methods", "parameters", "place", "re"]
__all__ += [
    "rebound",
    "receiver",
    "segment",
    "setting",
    "spread",
    "tail",
    "whole_chain",
    "why_not_fixed",
    "written",
]
