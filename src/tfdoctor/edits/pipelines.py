"""Edits of tf.data pipelines."""

import re

from tfdoctor.edits.arguments import setting
from tfdoctor.edits.chains import appended, methods_of, only_call, whole_chain
from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.splice import Declined, Splice
from tfdoctor.edits.uses import must_only_train
from tfdoctor.recording.program import ProgramRecord

AUTOTUNE = "tensorflow.data.AUTOTUNE"

_KEEPS_ORDER = ("deterministic", "experimental_deterministic")
_ORDER = "the pipeline is not deterministic, so the order of its examples would change"


def prefetch(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Append ``.prefetch(tf.data.AUTOTUNE)`` to the pipeline whose last stage is written on a line."""
    call = whole_chain(module, line)
    if "prefetch" in methods_of(call):
        raise Declined("the pipeline has a prefetch in the middle: move it to the end")
    return [appended(module, call, f".prefetch({module.imported(AUTOTUNE, call)})", rank=1)]


def must_keep_order(program: ProgramRecord, _: SyntaxTree, __: str) -> None:
    """Decline parallel calls where the recorded options let them change the order of the examples."""
    options = [dataset.options or {} for dataset in program.datasets]
    if any(option.get(name) is False for option in options for name in _KEEPS_ORDER):
        raise Declined(_ORDER)


# Windows that are copied into one array: a million of 100 numbers of four bytes take 400 MB.
MOST_WINDOWS = 1_000_000


def must_be_of_numbers(program: ProgramRecord, _: SyntaxTree, __: str) -> None:
    """Decline windows that are too many for one array, or not of a series of single numbers."""
    stages = {dataset.id: dataset for dataset in program.datasets}
    windows = [dataset for dataset in program.datasets if dataset.made_by == "window"]
    for window in windows:
        spec = stages[window.inputs[0]].element_spec if window.inputs[:1] else ""
        if not spec.startswith("TensorSpec(shape=()"):
            raise Declined("the recording does not show that the series is one of single numbers")
        if not 0 < (window.cardinality or 0) <= MOST_WINDOWS:
            raise Declined("the windows are too many for one array, or their number is unknown")


def must_have_open_lengths(program: ProgramRecord, _: SyntaxTree, __: str) -> None:
    """Decline where padded_batch() would not pad by itself: it pads dimensions that are open."""
    stages = {dataset.id: dataset for dataset in program.datasets}
    padded = [dataset for dataset in program.datasets if dataset.made_by == "padded_batch"]
    specs = [stages[one.inputs[0]].element_spec for one in padded if one.inputs[:1]]
    if not specs or not all("None," in spec.replace("name=None", "") for spec in specs):
        raise Declined("the recording does not show that the sequences have lengths of their own")
    if any("unknown" in spec for spec in specs):
        raise Declined("the recording does not show the number of dimensions of the elements")


def parallel(method: str, position: int) -> "ArgumentEdit":
    """Return the edit that gives a method ``num_parallel_calls``."""
    return ArgumentEdit(method, "num_parallel_calls", "", ("None",), position)


class ArgumentEdit:
    """An edit that gives one argument to the call of a method on a line."""

    def __init__(self, method: str, argument: str, value: str, instead_of: tuple[str, ...], position: int) -> None:
        self.method, self.argument, self.value = method, argument, value
        self.instead_of, self.position = instead_of, position

    def __call__(self, module: SyntaxTree, line: int, _: str) -> list[Splice]:
        """Return the splices; a value of "" is AUTOTUNE by the file's own name."""
        call = only_call(module, line, {self.method})
        if re.search(r"deterministic\s*=\s*(?!True\b|None\b)", module.text):
            raise Declined(_ORDER)
        value = self.value or module.imported(AUTOTUNE, call)
        return [setting(module, call, self.argument, value, instead_of=self.instead_of, position=self.position)]


def drop_remainder(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Give ``drop_remainder=True`` to the batch() on a line, of a dataset that is only trained on."""
    call = only_call(module, line, {"batch"})
    must_only_train(module, call)
    return [setting(module, call, "drop_remainder", "True", instead_of=(), position=1)]
