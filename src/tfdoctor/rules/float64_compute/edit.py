"""The edit that makes Keras compute in float32, where the file asks for float64 and uses it nowhere else."""

from tfdoctor.edits.kit import *

# What may meet a float32 value with a float64 one: TensorFlow computes with one type only.
_ELSEWHERE = re.compile(r"float64|double|\bGradientTape\b|\btf\.function\b|\bVariable\b|\bdtype\b|\bastype\b")
# A cast to whole numbers, whose type does not follow Keras'.
_WHOLE = re.compile(r"""\b(?:astype\(|dtype\s*=)\s*["']?(?:(?:np|numpy|tf)\.)?(?:u?int\d*|bool_?)\b""")


def floatx(module: SyntaxTree, _: int, __: str) -> list[Splice]:
    """Write float32 in the only ``set_floatx("float64")`` of a file that trains with fit()."""
    chosen = [call.args[0].value for call in module.calls("set_floatx") if len(call.args) == 1]
    if len(chosen) != 1 or module.written(chosen[0]).strip("\"'") != "float64":
        raise Declined(
            "the values of one step have to change their type together, and the file does not show all of them"
        )
    start, end = module.span(chosen[0])
    if found := _ELSEWHERE.search(_WHOLE.sub("", module.text[:start] + module.text[end:])):
        raise Declined(f"the file also has `{found[0]}`, which may need values of the same type")
    if ".fit(" not in module.text:
        raise Declined("the file does not train with fit(), which casts its data to Keras' type")
    return [module.replaced(chosen[0], module.written(chosen[0]).replace("64", "32"))]


EDITS = {"floatx": floatx}
