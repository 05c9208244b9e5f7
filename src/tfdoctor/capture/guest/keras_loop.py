"""Steps of Keras 3: around each call of the function that `make_train_function` made."""

import functools
import sys
import time
import weakref

from .frames import hide
from .journal import quietly

TRAINER = "keras.src.backend.tensorflow.trainer"


def hooks(window):
    """Wrap the functions that a Keras trainer calls once a step."""
    return {TRAINER: [lambda module: Trainers(window).patch(module.TensorFlowTrainer)]}


class Trainers:
    """What all Keras models of the process share."""

    def __init__(self, window):
        self.window = window
        self.fit = window.source("keras-fit")
        self.batch = None  # train_on_batch, once there is one
        self.tested = 0
        self.announce = quietly("fit", window.log)(self._announce)

    def patch(self, trainer):
        """Mark training and evaluation apart; prediction is neither."""
        self._wrap_maker(trainer, "make_train_function", "train_function", self._training)
        self._wrap_maker(trainer, "make_test_function", "test_function", self._testing)
        self._wrap_fit(trainer)

    def _wrap_maker(self, trainer, method, attribute, wrap):
        original = getattr(trainer, method)

        @functools.wraps(original)
        def make(model, force=False):  # noqa: FBT002  # Keras's signature
            result = original(model, force=force)
            function = getattr(model, attribute)
            if not getattr(function, "_tfdoctor", False):
                function = wrap(model, function)
                function._tfdoctor = True
                setattr(model, attribute, function)
            if method == "make_train_function":
                self.announce(model, sys._getframe(1))
            return result if result is None else function

        setattr(trainer, method, hide(make))

    def _wrap_fit(self, trainer):
        """The window does not outlive the fit it was opened in."""
        original = trainer.fit

        @functools.wraps(original)
        def fit(model, *args, **kwargs):
            reason = "exception"
            try:
                result = original(model, *args, **kwargs)
                reason = "end-of-fit"
            except KeyboardInterrupt:
                reason = "interrupt"
                raise
            finally:
                if self.window.state == "open" and self.window.owner is self.fit:
                    self.window.close(reason)
                self.window.registry.release()
            if self.window.leave:
                self.window.depart()
            return result

        trainer.fit = hide(fit)

    def _announce(self, model, frame):
        """Learn from fit, which is calling, how many steps it will take and what feeds it."""
        for _ in range(4):  # a user's override of make_train_function may stand between
            if frame is None or frame.f_code.co_name == "fit":
                break
            frame = frame.f_back
        local = frame.f_locals if frame is not None else {}
        epochs = local.get("epoch_iterator")
        if epochs is None:
            return
        self.window.registry.fitted(model, epochs)
        if epochs.num_batches and isinstance(local.get("epochs"), int):
            rounds = local["epochs"] - (local.get("initial_epoch") or 0)
            k = int(model.steps_per_execution)
            self.window.announce(self.fit, rounds * epochs.num_batches, k, skip=k)

    def _training(self, model, function):
        """Return the train function with a marker around each call inside the window."""
        reference = weakref.ref(model)
        window, clock = self.window, time.perf_counter_ns

        def marked(iterator):
            source, loops = self.fit, window.local.loops
            if sys._getframe(1).f_code.co_name == "train_on_batch":
                if loops.training():  # a loop over a dataset contains this call: that is the step
                    return function(iterator)
                source = self.batch = window.source("keras-train-on-batch")
            k = reference().steps_per_execution
            marker = source.begin(k)
            loops.depth += 1
            start = clock()
            try:
                result = function(iterator)
            except BaseException:
                source.retract(marker, k)
                raise
            finally:
                loops.depth -= 1
                if marker is not None:
                    marker.__exit__(None, None, None)
            if marker is None:
                source.spans.append((clock() - start, k))
            return result

        return hide(marked)

    def _testing(self, model, function):
        """Return the test function with a marker of its own kind inside the window."""
        window, reference = self.window, weakref.ref(model)

        def marked(iterator):
            loops = window.local.loops
            loops.depth += 1
            try:
                if window.state != "open":
                    return function(iterator)
                number, self.tested = self.tested, self.tested + 1
                with window.session.marker("test", number, reference().steps_per_execution):
                    return function(iterator)
            finally:
                loops.depth -= 1

        return hide(marked)
