"""The messages of traces, by the descriptions in the TensorFlow package, which is not imported (it takes 3 s).

An XSpace is parsed from a file, or an InputError raised with one sentence. What describes XLA's HloProto is
registered in a separate pool, so that it does not conflict with TensorFlow's or xprof's in the same process.
"""

import ast
import importlib
import importlib.util
import mmap
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.runtime_version import VersionError

from tfdoctor.terms.errors import InputError
from tfdoctor.terms.files import NotReadableError, in_pages

Message = Any  # A message of xplane_pb2, which has no type stubs

GZIP = b"\x1f\x8b"
# Bytes after a trace, so that of a damaged field two varints (10 bytes) and words (8) may be read beyond its end.
PADDING = 2 * (10 + 8)

XPLANE = "tsl/profiler/protobuf/xplane_pb2.py"  # Where TensorFlow keeps the module (2.4 to 2.21)


def parse(path: Path) -> Message:
    """Return the XSpace message in a file.

    Raises:
        InputError: the file cannot be read, is not an XSpace, is damaged or has no data.
    """
    data = xspace(path)
    try:
        space = xplane_pb2().XSpace.FromString(data[:-PADDING])
    except DecodeError as error:
        raise damaged(path) from error
    if not space.planes:
        raise empty(path)
    return space


def damaged(path: Path) -> InputError:
    """Return the error for a file that is no trace."""
    return InputError(f"{path} is damaged or not a profiler trace (*.xplane.pb): record again.")


def empty(path: Path) -> InputError:
    """Return the error for a trace of nothing."""
    return InputError(f"{path} contains no plane: it is empty or not a profiler trace (*.xplane.pb).")


def xspace(path: Path) -> mmap.mmap:
    """Return what is in a file that may be an XSpace, with PADDING.

    Raises:
        InputError: it cannot be read, or has no data.
    """
    try:
        data = in_pages(path, PADDING)
    except NotReadableError as error:
        raise InputError(f"{path} is not a file: name the *.xplane.pb itself.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): check the path.") from error
    if len(data) == PADDING:
        raise InputError(f"{path} is empty: the profiler was killed before it wrote; record again.")
    if data[: len(GZIP)] == GZIP:
        raise InputError(f"{path} is compressed: run gunzip on it first.")
    return data


@cache
def field_numbers(message: str) -> Mapping[str, int]:
    """Return the numbers of the fields of a message, such as "XEvent"."""
    fields = xplane_pb2().DESCRIPTOR.message_types_by_name[message].fields
    return {field.name: field.number for field in fields}


@cache
def xplane_pb2() -> Message:
    """Return TensorFlow's xplane_pb2 without importing TensorFlow.

    Raises:
        InputError: TensorFlow is not installed with tfdoctor, or does not fit its protobuf.
    """
    package = importlib.util.find_spec("tensorflow")
    if package is None or package.origin is None:
        raise InputError(
            "tfdoctor needs TensorFlow to read traces, but TensorFlow is not installed: run pip install tensorflow."
        )
    path = Path(package.origin).parent / XPLANE
    spec = importlib.util.spec_from_file_location("_tfdoctor_xplane_pb2", path)
    if spec is None or spec.loader is None or not path.exists():
        raise InputError(f"{path} is missing: reinstall TensorFlow.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except VersionError as error:
        raise InputError(f"protobuf is older than TensorFlow needs ({error}): upgrade it.") from error
    sys.modules[spec.name] = module
    return module


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
