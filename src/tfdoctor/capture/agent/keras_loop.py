"""Steps of Keras: around each call of the function that `make_train_function` made."""

import functools
import sys
import weakref

from .frames import hide
from .journal import quietly
from .keras_dialects import KERAS_2, KERAS_3, Keras2, Keras3
from .stack import here, way_here

FIT, BATCH = "keras-fit", "keras-train-on-batch"


def hooks(window):
    """Wrap the functions that a Keras trainer calls once a step."""
    dialects = {KERAS_3: Keras3, **dict.fromkeys(KERAS_2, Keras2)}
    found = {name: Trainers(window, dialect) for name, dialect in dialects.items()}
    window.trainers = list(found.values())
    return {name: [trainers.patch] for name, trainers in found.items()}


class Trainers:
    """What all models of one Keras share."""

    def __init__(self, window, dialect):
        self.window = window
        self.dialect = dialect
        self.kind = None  # the class of models, once it is imported
        self.fit = None  # the loop of the fit that is running
        self.tested = 0
        self.announce = quietly("fit", window.log)(self._announce)
        self.enter = quietly("fit", window.log)(self._enter)

    def patch(self, module):
        """Mark training and evaluation apart; prediction is neither."""
        trainer = self.kind = getattr(module, self.dialect.model)
        self._wrap_maker(trainer, "make_train_function", "train_function", self._training)
        self._wrap_maker(trainer, "make_test_function", "test_function", self._testing)
        self._wrap_fit(trainer)

    def _wrap_maker(self, trainer, method, attribute, wrap):
        original = getattr(trainer, method)

        @functools.wraps(original)
        def make(model, force=False):  # noqa: FBT002  # Keras's signature
            result = original(model, force=force)
            function = _wrapped(model, attribute, wrap)
            if method == "make_train_function":
                self.announce(model, sys._getframe(1))
            return result if result is None else function

        setattr(trainer, method, hide(make))

    def join(self, model, frame):
        """Take part in a fit that began before we were there, at the frame of one of its callbacks."""
        if self.kind is None or not isinstance(model, self.kind):
            return
        while frame is not None and self.dialect.read(frame.f_locals) is None:
            frame = frame.f_back
        self.fit = self.enter()
        _wrapped(model, "train_function", self._training)
        self.announce(model, frame)

    def _wrap_fit(self, trainer):
        """Know the fit that is running, and when it is over."""
        original = trainer.fit

        @functools.wraps(original)
        def fit(model, *args, **kwargs):
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
                self.window.fit_over(source, reason)
                self.window.registry.release()
            if self.window.leave:
                self.window.depart()
            return result

        trainer.fit = hide(fit)

    def _enter(self):
        """A fit begins: those of the same line are one loop."""
        at = here()
        source = self.window.source(FIT, tuple(at or ()), lambda: at)
        source.marks = not self.dialect.marks
        source.rounds += 1
        return source

    def _announce(self, model, frame):
        """Learn from fit, which is calling, how many steps it will take and what feeds it."""
        for _ in range(4):  # a user's override of make_train_function may stand between
            if frame is None or frame.f_code.co_name == "fit":
                break
            frame = frame.f_back
        local = frame.f_locals if frame is not None else {}
        found = self.dialect.read(local)
        if found is None or self.fit is None:
            return
        batches, first, adapter, given, size = found
        self.window.registry.fitted(model, adapter, given, size)
        if not isinstance(local.get("epochs"), int):
            return
        epochs = local["epochs"] - first
        self.window.registry.fit.update(epochs=epochs, steps_per_epoch=batches)
        if batches:
            k = self.dialect.k(model)
            self.window.announce(self.fit, epochs * batches, k, skip=k)

    def _source(self, caller):
        """Return the loop that calls the train function, or None when another one contains it.

        A GAN's discriminator is called twice an iteration, for real and for made-up data: each place
        that calls is a loop of its own.
        """
        if caller == "fit" and self.fit is None:  # it began before we were there
            self.fit = self.enter()
        if caller != "train_on_batch" and self.fit is not None:
            return self.fit
        if self.window.local.loops.training():  # a loop over a dataset contains this call
            return None
        return self.window.source(BATCH, way_here(), here)

    def _training(self, model, function):
        """Return the train function with a marker around each call inside the window."""
        window = self.window
        k = self.dialect.k(model)  # compile() makes another function when it changes

        def marked(iterator):
            if window.quiet:
                return function(iterator)
            source = self._source(sys._getframe(1).f_code.co_name)
            if source is None:
                return function(iterator)
            loops = window.local.loops
            marker = source.begin(k)
            loops.depth += 1
            try:
                result = function(iterator)
            except BaseException:
                source.retract(marker, k)
                raise
            finally:
                loops.depth -= 1
                if marker is not None:
                    marker.__exit__(None, None, None)
            return result

        return hide(marked)

    def _testing(self, model, function):
        """Return the test function with a marker of its own kind inside the window."""
        window, reference = self.window, weakref.ref(model)

        def marked(*args):
            loops = window.local.loops
            loops.depth += 1
            try:
                if window.state != "open" or self.dialect.marks:
                    return function(*args)
                number, self.tested = self.tested, self.tested + 1
                with window.session.marker("test", number, self.dialect.k(reference())):
                    return function(*args)
            finally:
                loops.depth -= 1

        return hide(marked)


def _wrapped(model, attribute, wrap):
    """Return a model's function, wrapped if it was not, and have the model call that."""
    function = getattr(model, attribute)
    if not getattr(function, "_tfdoctor", False):
        function = wrap(model, function)
        function._tfdoctor = True
        setattr(model, attribute, function)
    return function
