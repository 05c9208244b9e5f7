"""No frame of ours is in a traceback that the script sees, nor in its way of warnings and signatures."""

import functools
import inspect
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from tests.capture import agent

frames: Any = agent.load("process.frames")
STRIPS = pytest.mark.skipif(not frames.STRIPS, reason="before Python 3.11 frames cannot be removed")


def fails(error: BaseException) -> None:
    """Raise what it is given."""
    raise error


def wrapped(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function as a hook makes it of another one."""

    @functools.wraps(original)
    def call(*args: object, **kwargs: object) -> object:
        try:
            return original(*args, **kwargs)
        finally:
            len(args)

    hidden: Callable[..., Any] = frames.hide(call)
    return hidden


def names(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


@STRIPS
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit, StopIteration, GeneratorExit])
def test_an_exception_carries_no_frame_of_ours(kind: type[BaseException]) -> None:
    cause = OSError("it")
    error = kind("x")
    error.__cause__ = cause
    with pytest.raises(kind) as raised:
        wrapped(wrapped(fails))(error)
    assert names(raised.value)[1:] == ["fails"]
    assert raised.value.__cause__ is cause
    assert raised.value.__context__ is None


@STRIPS
def test_frames_of_the_script_between_ours_stay() -> None:
    inner = wrapped(fails)

    def between(error: BaseException) -> None:
        inner(error)

    with pytest.raises(ValueError, match="x") as raised:
        wrapped(between)(ValueError("x"))
    assert names(raised.value)[1:] == ["between", "fails"]


@STRIPS
def test_a_module_that_cannot_be_imported_has_no_frame_of_ours() -> None:
    class Broken:
        def exec_module(self, module: object) -> None:
            fails(ImportError(str(module)))

    loader = agent.load("process.imports").Loader(Broken(), [], None)
    with pytest.raises(ImportError) as raised:
        loader.exec_module(sys)
    ours = [name for name in names(raised.value)[1:] if name not in ("exec_module", "fails")]
    assert ours == []
    assert names(raised.value).count("exec_module") == 1


def warns() -> None:
    """Warn of the line that calls."""
    warnings.warn("of the caller", UserWarning, stacklevel=2)


def test_a_warning_is_of_the_line_of_the_script() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        wrapped(wrapped(warns))()
    assert [one.filename for one in seen] == [__file__]


def test_a_hidden_function_is_as_the_original() -> None:
    hidden = wrapped(fails)
    assert inspect.signature(hidden) == inspect.signature(fails)
    assert (hidden.__name__, hidden.__doc__) == ("fails", fails.__doc__)
    assert hidden.__wrapped__ is fails  # type: ignore[attr-defined]  # as `wraps` sets it


def test_the_caller_is_so_far_above_a_hidden_function() -> None:
    def call() -> str:
        return sys._getframe(frames.UP).f_code.co_name  # noqa: SLF001 - as a hook does

    caller = inspect.currentframe()
    assert caller is not None
    assert frames.hide(call)() == caller.f_code.co_name
