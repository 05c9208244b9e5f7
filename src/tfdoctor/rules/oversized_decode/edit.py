"""The edit that decodes JPEG images at a part of their size, where the rest of the function counts no pixels."""

import re

import libcst as cst

from tfdoctor.edits.arguments import setting
from tfdoctor.edits.by_id import Kind
from tfdoctor.edits.module import SyntaxTree, last_name
from tfdoctor.edits.splice import Declined, Splice
from tfdoctor.edits.values import Values

_RATIO = re.compile(r"ratio=([248])\b")

DECODERS = frozenset(f"tensorflow.{package}.decode_jpeg" for package in ("image", "io", "compat.v1.image"))

POSITION = 2  # Arguments of decode_jpeg() before ``ratio``: the contents and the channels
# Functions that count pixels of the image, or ask for their number.
_SIZED = re.compile(r"crop|slice|pad|shape|^size$|extract_patches|reshape")


def decode_ratio(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Give the ``ratio`` of the rule's example to the only decode_jpeg() on a line."""
    ratio, values = _RATIO.search(example), Values(module)
    calls = [call for call in module.on(cst.Call, line) if values.from_tensorflow(call.func) in DECODERS]
    if ratio is None or len(calls) != 1:
        raise Declined(f"line {line} has {'several calls' if calls else 'no call'} of decode_jpeg()")
    function = next(module.around(calls[0], cst.FunctionDef), None)
    if function is None:
        raise Declined("the images are decoded in no function")
    for call in module.inside(cst.Call, function):
        name = last_name(call.func)
        if _SIZED.search(name) and name not in ("ensure_shape", "set_shape"):
            raise Declined(f"line {module.line(call)} may count the pixels of the decoded image")
    for item in module.inside(cst.Subscript, function):
        if any(isinstance(part.slice, cst.Slice) for part in item.slice):
            raise Declined(f"line {module.line(item)} may count the pixels of the decoded image")
    return [setting(module, calls[0], "ratio", ratio[1], instead_of=("1",), position=POSITION)]


EDITS: dict[str, Kind] = {"decode-ratio": decode_ratio}
