"""Steps of Keras: around each call of the function that `make_train_function` made."""

from __future__ import annotations

import functools
import sys
import weakref

from ..process.frames import UP, hide, named_apart
from ..process.journal import guarded
from ..process.kept import threads
from ..process.keras_dialects import KERAS_2, KERAS_3, Keras2, Keras3
from ..process.stack import here, way_here
from ..window.steps import StepKind
from ..window.window import OPEN, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType

    from ..installed import Installed
    from ..process.declared import Foreign, Model, TrainerClass
    from ..process.keras_dialects import Dialect
    from ..window.steps import StepCounter

    TrainFunction = Callable[..., object]
    Marked = Callable[[object, FrameType], object]
    Wrap = Callable[[Model, TrainFunction], TrainFunction]

# What shows that a call of the train function is a step.
BATCHES, FITS = str(StepKind.BATCH.value), str(StepKind.FIT.value)
FITS_DEPTH = 4  # How far above `make_train_function` its fit may be: a user's override may stand between


def trainers(installed: Installed) -> Mapping[str, Trainers]:
    """Return what watches each Keras, by the name of the module that has its models."""
    dialects: dict[str, Dialect] = {KERAS_3: Keras3()}
    dialects.update((name, Keras2()) for name in KERAS_2)
    return {name: Trainers(installed, dialect) for name, dialect in dialects.items()}


class Trainers:
    """What all models of one Keras share."""

    def __init__(self, installed: Installed, dialect: Dialect) -> None:
        self.installed, self.dialect = installed, dialect
        self.window, self.log = installed.window, installed.log
        self.registry = installed.registry
        self.kind: type[Model] | None = None  # the class of models, once it is imported
        self.fit: StepCounter | None = None  # the loop of the fit that is running
        self.tested = 0

    def patch(self, module: object) -> None:
        """Mark training and evaluation apart; prediction is neither."""
        self.kind = getattr(module, self.dialect.model)
        trainer: TrainerClass = getattr(module, self.dialect.model)
        self._wrap_train_maker(trainer)
        self._wrap_test_maker(trainer)
        self._wrap_fit(trainer)

    def _wrap_train_maker(self, trainer: TrainerClass) -> None:
        original = trainer.make_train_function

        @functools.wraps(original)
        def make(model: Model, force: bool = False) -> object:  # noqa: FBT001, FBT002  # Keras's signature
            result = original(model, force=force)
            function = wrap_train_function(model, self.training)
            self.announce(model, sys._getframe(UP))
            return result if result is None else function

        trainer.make_train_function = hide(make)

    def _wrap_test_maker(self, trainer: TrainerClass) -> None:
        original = trainer.make_test_function

        @functools.wraps(original)
        def make(model: Model, force: bool = False) -> object:  # noqa: FBT001, FBT002  # Keras's signature
            result = original(model, force=force)
            function = model.test_function
            if not getattr(function, "_tfdoctor", False):
                function = model.test_function = self.testing(model, function)
            return result if result is None else function

        trainer.make_test_function = hide(make)

    def join(self, model: Foreign, frame: FrameType | None) -> None:
        """Take part in a fit that began before we were there, at the frame of one of its callbacks."""
        if self.kind is None or not isinstance(model, self.kind):
            return
        while frame is not None and self.dialect.read(frame.f_locals) is None:
            frame = frame.f_back
        self.fit = self.enter()
        wrap_train_function(model, self.training)
        self.announce(model, frame)

    def _wrap_fit(self, trainer: TrainerClass) -> None:
        """Know the fit that is running, and when it is over."""
        original, window = trainer.fit, self.window

        @functools.wraps(original)
        def fit(model: Model, *args: object, **kwargs: object) -> object:
            outer, reason = self.fit, "exception"
            source = self.fit = self.enter()
            try:
                result = original(model, *args, **kwargs)
                reason = "end-of-fit"
            except KeyboardInterrupt:
                reason = "interrupt"
                raise
            finally:
                self.fit = outer
                window.fit_over(source, reason)
                self.registry.release()
            if window.leave:
                window.depart()
            return result

        trainer.fit = hide(fit)

    @guarded("fit")
    def enter(self) -> StepCounter:
        """A fit begins: those of the same line are one loop."""
        at = here()
        source = self.window.source(StepKind.FIT, at or (), lambda: at)
        source.marks = not self.dialect.marks
        source.rounds += 1
        return source

    @guarded("fit")
    def announce(self, model: Model, frame: FrameType | None) -> None:
        """Learn from fit, which is calling, how many steps it will take and what feeds it."""
        for _ in range(FITS_DEPTH):
            if frame is None or frame.f_code.co_name == "fit":
                break
            frame = frame.f_back
        local = frame.f_locals if frame is not None else {}
        state = self.dialect.read(local)
        if state is None or self.fit is None:
            return
        self.registry.fitted(model, state.adapter, state.datasets, state.batch_size)
        if not isinstance(local.get("epochs"), int):
            return
        epochs = local["epochs"] - state.first_epoch
        self.registry.fit.update({"epochs": epochs, "steps_per_epoch": state.steps})
        if state.steps:
            k = self.dialect.steps_per_call(model)
            self.window.announce(self.fit, epochs * state.steps, k, skip=k)

    def _source(self, caller: str) -> StepCounter | None:
        """Return the loop that calls the train function, or None when another one contains it.

        A GAN's discriminator is called twice an iteration, for real and for made-up data: each place
        that calls is a loop of its own.
        """
        if caller == "fit" and self.fit is None:  # it began before we were there
            self.fit = self.enter()
        if caller != "train_on_batch" and self.fit is not None:
            return self.fit
        if self.installed.local.loops.training():  # a loop over a dataset contains this call
            return None
        return self.window.source(StepKind.BATCH, way_here(), here)

    def training(self, model: Model, function: TrainFunction) -> TrainFunction:
        """Return the train function with a marker around each call inside the window."""
        window, installed, batches = self.window, self.installed, self.installed.batches
        k = self.dialect.steps_per_call(model)  # compile() makes another function when it changes

        def marked(iterator: object, caller: FrameType) -> object:
            source = None if window.quiet else self._source(caller.f_code.co_name)
            if source is None:
                return function(iterator)
            loops = installed.local.loops
            marker = source.begin(k)
            asked = installed.lengths.calls_left and source.kind is StepKind.BATCH
            if asked or installed.arguments.wanted:
                self._note(caller)
            loops.depth += 1
            try:
                result = function(batches.passed(iterator, source.calls, k))
            except BaseException:
                source.retract(marker, k)
                raise
            finally:
                loops.depth -= 1
                if marker is not None:
                    marker.__exit__(None, None, None)
            if window.returned is not None:
                window.returned(result)
            return result

        return _own(self._accounted(named_apart(marked), function, k))

    def _accounted(self, marked: Marked, function: TrainFunction, k: int) -> TrainFunction:
        """Return the train function, each call of which is a step of the account of the run."""
        run = self.installed.run
        clock, repeats, window = run.clock, run.clock.repeats, self.window

        def stepped(iterator: object) -> object:
            caller, part = sys._getframe(UP), clock.running
            again, outer = False, None
            try:  # from here on: a handler of a signal may raise between any two lines
                again = clock.thread == threads.get_ident() and repeats.again(marked, caller)
                if not again:
                    kind = BATCHES if caller.f_code.co_name == "train_on_batch" else FITS
                    outer = run.step_begins(caller, kind, k)
                return function(iterator) if window.quiet else marked(iterator, caller)
            except BaseException as error:
                run.step_fails(repeats.outer() if again else outer, error, part=part)
                raise
            finally:
                if again or outer is not None:
                    clock.running = part
                if not (again and repeats.over()):
                    outer = repeats.outer() if again else outer
                    run.step_ends(outer)
                    run.step_ended(marked, caller, outer, k)

        return stepped

    def _note(self, frame: FrameType) -> None:
        """Note the arrays that train_on_batch, which is calling, was given."""
        if frame.f_code.co_name != "train_on_batch":
            return
        arguments, lengths = self.installed.arguments, self.installed.lengths
        given = [frame.f_locals.get(name) for name in ("x", "y", "sample_weight")]
        if arguments.wanted:
            arguments.note(given, {})
        if lengths.calls_left and self.window.state is WAITING:
            lengths.call(given)

    def testing(self, model: Model, function: TrainFunction) -> TrainFunction:
        """Return the test function with a marker of its own kind inside the window."""
        window, installed, reference = self.window, self.installed, weakref.ref(model)

        def marked(*args: object) -> object:
            loops, capture = installed.local.loops, window.capture
            loops.depth += 1
            try:
                if window.state is not OPEN or capture is None or self.dialect.marks:
                    return function(*args)
                number, self.tested = self.tested, self.tested + 1
                with capture.marker("test", number, self.dialect.steps_per_call(reference())):
                    return function(*args)
            finally:
                loops.depth -= 1

        return _own(marked)


def _own(marked: TrainFunction) -> TrainFunction:
    """Hide a function of ours, and mark it so that it is not wrapped again."""
    function: Foreign = hide(marked)
    function._tfdoctor = True
    own: TrainFunction = function
    return own


def wrap_train_function(model: Model, wrap: Wrap) -> TrainFunction:
    """Return a model's train function, wrapped if it was not, and have the model call that."""
    function = model.train_function
    if not getattr(function, "_tfdoctor", False):
        function = model.train_function = wrap(model, function)
    return function
