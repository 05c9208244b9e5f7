"""The edit that puts shuffle() before the batch() or the repeat() that stands directly before it."""

from dataclasses import replace

from tfdoctor.edits.kit import *


def earlier_shuffle(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Exchange ``.batch(n).shuffle(k)``, with a buffer for as many examples, or ``.repeat().shuffle(k)``."""
    call = only_call(module, line, {"shuffle"})
    before = receiver(call)
    if not isinstance(before, ast.Call) or method_of(before) not in ("batch", "repeat"):
        raise Declined("no batch() or repeat() stands directly before shuffle() in one chain")
    earlier, later = exchanged(module, before, call)
    if (buffer := re.search(r"\.shuffle\((\d+)\)\.batch", example)) is not None:
        if spread(call):
            raise Declined("shuffle() is called with * or **")
        size = named(call).get("buffer_size") or next(iter(call.args), None)
        if size is None:
            raise Declined("shuffle() shows no size of its buffer")
        if earlier.new.count(module.written(size)) != 1:
            raise Declined("the size of the buffer is not clear")
        earlier = replace(earlier, new=earlier.new.replace(module.written(size), buffer[1]))
    return [earlier, later]


EDITS = {"earlier-shuffle": earlier_shuffle}
