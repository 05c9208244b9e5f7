"""`model.fit(…, callbacks=[tfdoctor.Recorder()])`: records the fit that it is given to."""

import sys
import weakref
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Self

from tfdoctor.api.results import Results, say
from tfdoctor.api.run import PROFILED, begin, planned
from tfdoctor.capture import inside
from tfdoctor.errors import CaptureError, OutputError, TfdoctorError


class Recorder(Results):
    """A callback of whichever Keras is imported; each fit it is given to is a recording of its own.

    The first is recorded at `path`, the next ones beside it: `path-2`, `path-3` and so on.

    Args:
        path: the folder to record into; by default one below `runs`.
        steps: training steps to trace.
        warmup: training steps to let pass first.
        sample_every_ms: how often to sample the machine; 0 turns it off.

    Raises:
        CaptureError: an argument makes no sense, or no Keras is imported.
        OutputError: the folder is not empty.
    """

    def __new__(cls, *_args: object, **_options: object) -> Self:
        """Return an object that is a callback of Keras as well."""
        return super().__new__(_callback(cls, _keras()))  # type: ignore[arg-type] # classes are hashable

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        steps: int = 20,
        warmup: int = 10,
        sample_every_ms: int = 200,
    ) -> None:
        super().__init__()
        self._plan = planned(path, steps, warmup, None, sample_every_ms)
        self._recorded = 0
        out = self._plan.out
        if out is not None and out.is_dir() and any(out.iterdir()):
            raise OutputError(f"{out} is not empty: choose another path, or remove it first.")

    def on_train_begin(self, logs: object = None) -> None:  # noqa: ARG002  # Keras's signature
        """Begin to record, and join the fit that is calling; nothing is raised into it."""
        frame = sys._getframe(1)  # noqa: SLF001 - the fit
        self._inside = None
        self.__dict__.pop("_diagnosis", None)
        try:
            self._begin(frame)
        except TfdoctorError as error:
            self._why_none = str(error).rstrip(".")
            say(str(error))

    def on_train_end(self, logs: object = None) -> None:  # noqa: ARG002  # Keras's signature
        """End the recording."""
        if self._inside is not None and self.recording is None:
            self._inside.end()
            say(self._said())

    def _begin(self, frame: FrameType) -> None:
        if inside.profiled():
            raise CaptureError(f"{PROFILED}: the Recorder leaves it to that.")
        self._recorded += 1
        out, plan = self._plan.out, self._plan
        if out is not None and self._recorded > 1:
            plan = replace(plan, out=out.with_name(f"{out.name}-{self._recorded}"))
        self._inside = begin(plan, frame, "fit")
        self._inside.going_on = Fit(frame).going_on
        self._inside.join(getattr(self, "model", None), frame)


class Fit:
    """A fit that is running; Keras tells its callbacks nothing when it raises."""

    def __init__(self, frame: FrameType | None) -> None:
        callbacks = next(filter(None, map(_callbacks, _above(frame))), None)
        self.callbacks = weakref.ref(callbacks) if callbacks is not None else None

    def going_on(self) -> bool:
        """Say whether it is on any thread's stack."""
        callbacks = self.callbacks() if self.callbacks else None
        stacks = sys._current_frames().values()  # noqa: SLF001 - there is no other way to them
        return callbacks is not None and any(
            _callbacks(frame) is callbacks for stack in stacks for frame in _above(stack)
        )


def _above(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _callbacks(frame: FrameType) -> object:
    """Return the list of callbacks that a fit has made for itself, or None for any other frame."""
    found = frame.f_locals.get("callbacks") if frame.f_code.co_name == "fit" else None
    return found if hasattr(found, "on_train_begin") else None


@cache
def _callback(recorder: type, keras: ModuleType) -> type:
    """Return the class of recorders that are callbacks of this Keras."""
    return type(recorder.__name__, (recorder, keras.callbacks.Callback), {})


def _keras() -> Any:  # noqa: ANN401  # a module, or TensorFlow's stand-in for one
    """Return the Keras that is in use; a callback of Keras 2 also suits Keras 3."""
    found = sys.modules.get("tf_keras") or sys.modules.get("keras")
    found = found or getattr(sys.modules.get("tensorflow"), "keras", None)
    if found is None:
        raise CaptureError("Import Keras before making a Recorder, which becomes a callback of it.")
    return found
