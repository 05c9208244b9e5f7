"""XLA's HloProto, described in the TensorFlow package: read without importing TensorFlow.

The description is taken from the generated files into a pool of its own, so that it never clashes with
the one that TensorFlow or xprof registers in the same process.
"""

import ast
import importlib
import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

HLO = "xla/service/hlo.proto"
"""The file that describes HloProto, by the name that its importers use."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """The message class and the names of the element types."""

    hlo: Any
    types: dict[int, str]


@cache
def kinds() -> Kinds | None:
    """Return what it takes to read a HloProto; None where no TensorFlow describes it."""
    package = importlib.util.find_spec("tensorflow")
    if package is None or package.origin is None:
        return None
    pool = DescriptorPool()
    try:
        _add(HLO, Path(package.origin).parent / "compiler", pool, set())
        hlo = GetMessageClass(pool.FindMessageTypeByName("xla.HloProto"))
    except (OSError, SyntaxError, KeyError, TypeError):  # a TensorFlow that keeps it elsewhere
        return None
    types = pool.FindEnumTypeByName("xla.PrimitiveType").values_by_number
    return Kinds(hlo, {number: value.name for number, value in types.items()})


def _add(name: str, folder: Path, pool: DescriptorPool, known: set[str]) -> None:
    """Add a file's description to the pool, after those that it imports."""
    if name in known:
        return
    known.add(name)
    data = _description(name, folder)
    for needed in FileDescriptorProto.FromString(data).dependency:
        _add(needed, folder, pool, known)
    pool.AddSerializedFile(data)


def _description(name: str, folder: Path) -> bytes:
    """Return the serialized description that protoc wrote into a generated file."""
    if name.startswith("google/protobuf/"):
        module = importlib.import_module(f"{name.removesuffix('.proto').replace('/', '.')}_pb2")
        return bytes(module.DESCRIPTOR.serialized_pb)
    text = (folder / f"{name.removesuffix('.proto')}_pb2.py").read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "AddSerializedFile":
            return bytes(ast.literal_eval(node.args[0]))
    raise KeyError(name)
