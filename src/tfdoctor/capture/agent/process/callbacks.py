"""The Keras callbacks that run in a stack."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


def callbacks_in(frame: FrameType | None) -> Iterator[str]:
    """Yield 'Class.on_something' of each Keras callback that runs in a stack, the innermost first."""
    while frame is not None:
        name = frame.f_code.co_name
        if name.startswith("on_"):
            kind = type(frame.f_locals.get("self"))
            bases = [base.__name__ for base in kind.__mro__]
            if "Callback" in bases and kind.__name__ != "CallbackList":
                yield f"{kind.__name__}.{name}"
        frame = frame.f_back
