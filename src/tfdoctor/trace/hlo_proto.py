"""The message types of XLA's HloProto, from the TensorFlow package but without importing TensorFlow.

The description comes from the generated files and is registered in a separate pool, so that it does not
conflict with that of TensorFlow or xprof in the same process.
"""

import ast
import importlib
import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

HLO = "xla/service/hlo.proto"  # The file that describes HloProto, by the name that its importers use


@cache
def hlo_types() -> tuple[Any, dict[int, str]] | None:
    """Return the message class of HloProto, and the names of element types by number.

    None if no installed TensorFlow describes it.
    """
    package = importlib.util.find_spec("tensorflow")
    if package is None or package.origin is None:
        return None
    pool = DescriptorPool()
    try:
        _add(HLO, Path(package.origin).parent / "compiler", pool, set())
        message = GetMessageClass(pool.FindMessageTypeByName("xla.HloProto"))
    except (OSError, SyntaxError, KeyError, TypeError):  # this TensorFlow stores it elsewhere
        return None
    element_types = pool.FindEnumTypeByName("xla.PrimitiveType").values_by_number
    return message, {number: value.name for number, value in element_types.items()}


def _add(name: str, folder: Path, pool: DescriptorPool, added: set[str]) -> None:
    """Add a file's description to the pool, after those of its imports."""
    if name in added:
        return
    added.add(name)
    if name.startswith("google/protobuf/"):
        module = importlib.import_module(f"{name.removesuffix('.proto').replace('/', '.')}_pb2")
        data = bytes(module.DESCRIPTOR.serialized_pb)
    else:  # as protoc wrote it into a generated file
        text = (folder / f"{name.removesuffix('.proto')}_pb2.py").read_text(encoding="utf-8")
        calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
        written = [call for call in calls if getattr(call.func, "attr", "") == "AddSerializedFile"]
        if not written:
            raise KeyError(name)
        data = bytes(ast.literal_eval(written[0].args[0]))
    for imported in FileDescriptorProto.FromString(data).dependency:
        _add(imported, folder, pool, added)
    pool.AddSerializedFile(data)
