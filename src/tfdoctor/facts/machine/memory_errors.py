"""What TensorFlow, XLA and numpy say where memory does not suffice: the tensor, its type, and the allocator."""

import re
from dataclasses import dataclass
from math import prod
from typing import Self

from tfdoctor.facts.run.program import WIDTHS

# Classes of exceptions that mean it.
ERRORS = frozenset({"MemoryError", "_ArrayMemoryError", "ResourceExhaustedError"})
STATUS = re.compile(r"\bRESOURCE_EXHAUSTED\b")  # The status code of such an error, where its class is a general one

OF_STATUS = frozenset({"InternalError", "XlaRuntimeError", "JaxRuntimeError", "UnknownError"})

# TensorFlow, core/framework/op_kernel.cc.
TENSOR = re.compile(
    r"OOM when allocating tensor with shape\[(?P<shape>[\d,]*)\] and type (?P<dtype>\w+) "
    r"on \S+ by allocator (?P<allocator>\w+)"
)

# numpy, _core/_exceptions.py.
ARRAY = re.compile(
    r"Unable to allocate (?P<amount>[\d.]+) (?P<unit>\w+) for an array "
    r"with shape \((?P<shape>[\d, ]*)\) and data type (?P<dtype>\w+)"
)

# XLA, stream_executor and its allocators.
BYTES = re.compile(r"[Oo]ut of memory (?:while )?trying to allocate (?P<amount>\d+) ?bytes")
DTYPES = {"float": "float32", "double": "float64", "half": "float16"}  # TensorFlow's C++ names, as numpy has them

UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}


@dataclass(frozen=True, slots=True)
class MemoryWanted:
    """The tensor or the bytes that could not be allocated; empty where the message does not say."""

    shape: tuple[int, ...] = ()
    dtype: str = ""
    allocator: str = ""
    nbytes: float | None = None

    @classmethod
    def of(cls, message: str) -> Self:
        """Read the message of an exception."""
        if found := TENSOR.search(message) or ARRAY.search(message):
            told = found.groupdict()
            dtype = DTYPES.get(told["dtype"], told["dtype"])
            shape = tuple(int(size) for size in told["shape"].replace(" ", "").split(",") if size)
            nbytes = float(prod(shape) * WIDTHS[dtype]) if WIDTHS.get(dtype) else None
            if "amount" in told:  # numpy's types may have no width
                nbytes = nbytes or float(told["amount"]) * UNITS.get(told["unit"], 0) or None
            return cls(shape, dtype, told.get("allocator", ""), nbytes)
        found = BYTES.search(message)
        return cls(nbytes=float(found["amount"])) if found else cls()


def is_memory_error(error: str, message: str) -> bool:
    """Return whether an exception, by its class or its status code, means that memory did not suffice."""
    return error in ERRORS or (error in OF_STATUS and STATUS.search(message) is not None)
