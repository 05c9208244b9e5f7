"""The edit that lets TensorFlow choose its number of threads, where the program sets it on a line of its own."""

from tfdoctor.edits.kit import *

SETTERS = ("set_inter_op_parallelism_threads", "set_intra_op_parallelism_threads")


def all_cores(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Write 0, with which TensorFlow takes the cores of the job, for the number of threads on a line."""
    values = Values(module)
    calls = [call for call in module.calls(*SETTERS, line=line) if values.from_tensorflow(call.func)]
    if len(calls) != 1 or len(calls[0].args) != 1 or calls[0].args[0].star:
        raise Declined(f"line {line} does not set the number of threads in a call of tf.config")
    return [module.replaced(calls[0].args[0].value, "0")]


EDITS = {"all-cores": all_cores}
