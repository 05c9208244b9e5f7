"""The edit that decodes JPEG images at a part of their size, where the rest of the function counts no pixels."""

from tfdoctor.edits.kit import *

DECODERS = frozenset(f"tensorflow.{package}.decode_jpeg" for package in ("image", "io", "compat.v1.image"))

POSITION = 2  # Arguments of decode_jpeg() before ``ratio``: the contents and the channels
# Functions that count pixels of the image, or ask for their number.
_SIZED = re.compile(r"crop|slice|pad|shape|^size$|extract_patches|reshape")


def decode_ratio(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Give the ``ratio`` of the rule's example to the only decode_jpeg() on a line."""
    ratio = in_example(r"ratio=([248])\b", example, "the ratio")[1]
    calls = [call for call in module.on(ast.Call, line) if module.from_tensorflow(call.func) in DECODERS]
    call = only(calls, f"line {line} has {{}} of TensorFlow's decode_jpeg()")
    function = known(module.function_around(call), "the images are decoded in no function")
    sized: list[ast.expr] = [
        call
        for call in module.inside(ast.Call, function)
        if (name := tail(call)) not in ("ensure_shape", "set_shape") and _SIZED.search(name)
    ]
    for item in module.inside(ast.Subscript, function):
        parts = item.slice.elts if isinstance(item.slice, ast.Tuple) else [item.slice]
        sized += [item for part in parts if isinstance(part, ast.Slice)]
    if sized:
        raise Declined(f"line {sized[0].lineno} may count the pixels of the decoded image")
    return [setting(module, call, "ratio", ratio, instead_of=("1",), position=POSITION)]


EDITS = {"decode-ratio": decode_ratio}
