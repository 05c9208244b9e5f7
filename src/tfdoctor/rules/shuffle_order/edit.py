"""The edit that puts shuffle() before the batch() or the repeat() that stands directly before it."""

import re

import libcst as cst

from tfdoctor.edits.by_id import Kind
from tfdoctor.edits.chains import methods_of, only_call, segment
from tfdoctor.edits.module import SyntaxTree, named, positional
from tfdoctor.edits.splice import Declined, Splice

_BUFFER = re.compile(r"\.shuffle\((\d+)\)\.batch")


def earlier_shuffle(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Exchange ``.batch(n).shuffle(k)``, with a buffer for as many examples, or ``.repeat().shuffle(k)``."""
    call = only_call(module, line, {"shuffle"})
    before = call.func.value if isinstance(call.func, cst.Attribute) else None
    if not isinstance(before, cst.Call) or methods_of(before)[:1] not in (["batch"], ["repeat"]):
        raise Declined("no batch() or repeat() stands directly before shuffle() in one chain")
    first, second = segment(module, before), segment(module, call)
    text = second.text
    if (buffer := _BUFFER.search(example)) is not None:
        text = _with_buffer(module, call, text, buffer[1])
    return [Splice(first.start, first.end, 0, text), Splice(second.start, second.end, 0, first.text)]


def _with_buffer(module: SyntaxTree, call: cst.Call, text: str, buffer: str) -> str:
    """Return how shuffle() is written with another size of its buffer."""
    if any(argument.star for argument in call.args):
        raise Declined("shuffle() is called with * or **")
    size = named(call).get("buffer_size") or next(iter(positional(call)), None)
    if size is None:
        raise Declined("shuffle() shows no size of its buffer")
    written = module.written(size)
    if text.count(written) != 1:
        raise Declined("the size of the buffer is not clear")
    return text.replace(written, buffer)


EDITS: dict[str, Kind] = {"earlier-shuffle": earlier_shuffle}
