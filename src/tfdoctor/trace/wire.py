"""Parses a file into an XSpace message, or raises an InputError with one sentence.

``xplane_pb2`` is loaded from its file in the TensorFlow package, without importing TensorFlow (0.05 s in
place of 3 s).
"""

import importlib.util
import mmap
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
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
