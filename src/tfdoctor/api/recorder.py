"""`model.fit(…, callbacks=[tfdoctor.Recorder()])`: records this fit."""

import sys
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import Self

from tfdoctor.api.run import PROFILED, Results, begin, planned, say
from tfdoctor.capture import in_process
from tfdoctor.capture.agent.process.all_threads import OtherThreads
from tfdoctor.terms.errors import CaptureError, NotEmptyError, TfdoctorError


class Recorder(Results):
    """A callback for the imported Keras; each fit becomes a recording of its own.

    The first is written to `path`, the next ones to `path-2`, `path-3` and so on.

    Args:
        path: folder to record into; a new one in `runs` by default.
        steps: number of training steps to trace.
        warmup: number of training steps before tracing starts.
        sample_every_ms: period for sampling the machine; 0 turns sampling off.
        for_epochs: also say what the findings save of a run of so many epochs.

    Raises:
        CaptureError: an argument is invalid, or Keras is not imported.
        OutputError: the folder is not empty.
    """

    def __new__(cls, *_args: object, **_options: object) -> Self:
        """Return an object that is a callback of Keras as well; one of Keras 2 also suits Keras 3."""
        keras = sys.modules.get("tf_keras") or sys.modules.get("keras")
        keras = keras or getattr(sys.modules.get("tensorflow"), "keras", None)
        if keras is None:
            raise CaptureError("Import Keras before you create a Recorder, which is a Keras callback.")
        return super().__new__(_callback(cls, keras))  # type: ignore[arg-type] # classes are hashable

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        steps: int = 20,
        warmup: int = 10,
        sample_every_ms: int = 200,
        for_epochs: int | None = None,
    ) -> None:
        super().__init__()
        self._plan = planned(path, for_epochs, steps=steps, warmup=warmup, sample_every_ms=sample_every_ms)
        self._for_epochs, self._recorded = for_epochs, 0
        out = self._plan.out
        if out is not None and out.is_dir() and any(out.iterdir()):
            raise NotEmptyError(f"{out} is not empty: choose another folder, or remove it first.")

    def on_train_begin(self, logs: object = None) -> None:  # noqa: ARG002  # Keras's signature
        """Start to record the fit that calls this; no error of ours is raised into it."""
        frame = sys._getframe(1)  # noqa: SLF001 - the fit
        self._inside = None
        self.__dict__.pop("diagnosis", None)
        try:
            if in_process.profiled():
                raise CaptureError(f"{PROFILED}, so the Recorder does nothing.")
            self._recorded += 1
            out, plan = self._plan.out, self._plan
            if out is not None and self._recorded > 1:
                plan = replace(plan, out=out.with_name(f"{out.name}-{self._recorded}"))
            self._inside = begin(plan, frame, "fit")
            self._inside.going_on = fit_going_on(frame)
            self._inside.join(getattr(self, "model", None), frame)
        except TfdoctorError as error:
            self._why_none = str(error).rstrip(".")
            say(str(error))

    def on_train_end(self, logs: object = None) -> None:  # noqa: ARG002  # Keras's signature
        """End the recording when fit does, and print one line on where it is."""
        if self._inside is not None and self.recording is None:
            self._inside.end()
            say(self._summary())


def fit_going_on(frame: FrameType | None) -> Callable[[], bool]:
    """Return what says whether a fit is on any stack: Keras does not tell its callbacks when it raises."""
    its = next(filter(None, map(_callbacks, _above(frame))), None)
    known = weakref.ref(its) if its is not None else lambda: None
    del its

    def going_on() -> bool:
        callbacks = known()
        with OtherThreads() as stacks:
            return callbacks is not None and any(
                _callbacks(frame) is callbacks for stack in stacks.values() for frame in _above(stack)
            )

    return going_on


def _above(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _callbacks(frame: FrameType) -> object:
    """Return the callback list of a frame of `fit`; None for any other frame."""
    callbacks = frame.f_locals.get("callbacks") if frame.f_code.co_name == "fit" else None
    return callbacks if hasattr(callbacks, "on_train_begin") else None


@cache
def _callback(recorder: type, keras: ModuleType) -> type:
    return type(recorder.__name__, (recorder, keras.callbacks.Callback), {})
