"""Where Keras shows training: fits, and each call of the functions that `make_train_function` made.

What differs between Keras 3 and Keras 2 (tf_keras, and TensorFlow up to 2.15) stands in `Keras3` and `Keras2`.
"""

from __future__ import annotations

from ..entry_points import KERAS_3
from ..process.journal import guarded
from ..process.kept import threads
from ..process.stack import here, way_here
from ..stream import WINDOW, Point
from ..window.steps import StepKind
from ..window.window import WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType

    from ..installed import Installed
    from ..process.declared import Foreign, Model
    from ..stream import Args, Enter, Held, Kwargs, Leave, Stream
    from ..window.steps import StepCounter

    TrainFunction = Callable[..., object]

# What shows that a call of the train function is a step.
BATCHES, FITS = str(StepKind.BATCH.value), str(StepKind.FIT.value)
FITS_DEPTH = 4  # How far above `make_train_function` its fit may be: a user's override may stand between
GIVEN = ("x", "y", "sample_weight")  # The arrays that train_on_batch is given


def listen(stream: Stream, installed: Installed) -> None:
    """Follow the models of each Keras that the script imports."""
    known: dict[str, Trainers] = {}

    def of(point: Point) -> Trainers:
        if point.module not in known:
            known[point.module] = Trainers(stream, installed, point)
            installed.trainers.append(known[point.module])
        return known[point.module]

    def other(point: Point) -> None:  # calls of its models are timed as a whole
        installed.log.state["backend"] = point.module.rpartition(".trainer")[0].rpartition(".")[2]

    stream.on("train", other)
    stream.on("fit", lambda point: of(point).fits)
    stream.on("train function", lambda point: of(point).makes(point))


class Trainers:
    """What all models of one Keras share."""

    def __init__(self, stream: Stream, installed: Installed, point: Point) -> None:
        self.stream, self.installed, self.kind = stream, installed, point.owner
        self.window, self.log, self.registry = installed.window, installed.log, installed.registry
        self.keras: type[Keras3 | Keras2] = Keras3 if point.module == KERAS_3 else Keras2
        self.fit: StepCounter | None = None  # the loop of the fit that is running

    # Fits

    def fits(self, held: Held, _: Args, __: Kwargs, ___: FrameType) -> None:
        """Know the fit that is running, and when it is over."""
        call = [self.fit, None]
        held.append((self._fit_over, call))
        self.fit = call[1] = self.enter()

    def _fit_over(self, call: Foreign, _: object, error: BaseException | None) -> None:
        self.fit, source = call
        interrupt = "interrupt" if isinstance(error, KeyboardInterrupt) else "exception"
        self.window.fit_over(source, "end-of-fit" if error is None else interrupt)
        self.registry.held = None
        if error is None and self.window.leave:
            self.window.depart()

    @guarded("fit")
    def enter(self) -> StepCounter:
        """A fit begins: those of the same line are one loop."""
        at = here()
        source = self.window.source(StepKind.FIT, at or (), lambda: at)
        source.marks = not self.keras.MARKS
        source.rounds += 1
        return source

    def join(self, model: Foreign, frame: FrameType | None) -> None:
        """Take part in a fit that began before we were there, at the frame of one of its callbacks."""
        if not isinstance(model, self.kind):
            return
        while frame is not None and self.keras.read(frame.f_locals) is None:
            frame = frame.f_back
        self.fit = self.enter()
        self.trains(model, frame)

    @guarded("fit")
    def announce(self, model: Model, frame: FrameType | None) -> None:
        """Learn from fit, which is calling, how many steps it will take and what feeds it."""
        for _ in range(FITS_DEPTH):
            if frame is None or frame.f_code.co_name == "fit":
                break
            frame = frame.f_back
        local = frame.f_locals if frame is not None else {}
        state = self.keras.read(local)
        if state is None or self.fit is None:
            return
        adapter, datasets, batch_size, steps, first_epoch = state
        self.registry.fitted(model, adapter, datasets, batch_size)
        if not isinstance(local.get("epochs"), int):
            return
        epochs = local["epochs"] - first_epoch
        self.registry.fit.update({"epochs": epochs, "steps_per_epoch": steps})
        if steps:
            k = self.keras.steps_per_call(model)
            self.window.announce(self.fit, epochs * steps, k, skip=k)

    # The functions that Keras makes to train

    def makes(self, point: Point) -> Enter:
        """Have what makes the train function of a model return that as we follow it."""

        def enter(_: Held, args: Args, kwargs: Kwargs, frame: FrameType) -> Callable[[], object]:
            def made() -> object:
                result = point.original(*args, **kwargs)
                function = self.trains(args[0], frame)
                return result if result is None or function is None else function

            return made

        return enter

    @guarded("fit")
    def trains(self, model: Model, frame: FrameType | None) -> object:
        """Have a model call its train function as we follow it, and return that."""
        function = model.train_function
        if not getattr(function, "_tfdoctor", False):
            # compile() makes another function when the steps of a call change:
            calls = TrainFunctionCalls(self, function, self.keras.steps_per_call(model))
            function = model.train_function = calls.followed()
        self.announce(model, frame)
        return function


class TrainFunctionCalls:
    """The calls of the train function of a model, of k steps each."""

    def __init__(self, trainers: Trainers, function: TrainFunction, k: int) -> None:
        self.trainers, self.function, self.k = trainers, function, k
        self.installed, self.window = trainers.installed, trainers.window
        self.clock = trainers.installed.recorder.clock

    def followed(self) -> Foreign:
        """Return what stands for the function; it is not wrapped again."""
        point = Point(self.trainers.log, self.function, "step")
        point.key, point.again, point.notes = self, self.again, self.clock.repeats
        own: Foreign = self.trainers.stream.wrap(point, [(self.account, ""), (self.count, WINDOW)])
        own._tfdoctor = True
        return own

    def account(self, held: Held, _: Args, __: Kwargs, frame: FrameType) -> None:
        """Have the clock know a call as a step."""
        clock = self.clock
        call = [frame, clock.running, False, None]
        held.append((self._accounted, call))
        if clock.thread == threads.get_ident() and clock.repeats.again(self, frame):
            call[2] = True
        else:
            kind = BATCHES if frame.f_code.co_name == "train_on_batch" else FITS
            call[3] = clock.step_begins_here(frame, kind, self.k)

    def again(self, _: Args, __: Kwargs, frame: FrameType) -> tuple[Leave, Foreign]:
        """Return how a call is left that was to repeat the one before."""
        return self._accounted, [frame, False, True, None]

    def _accounted(self, call: Foreign, _: object, error: BaseException | None) -> None:
        (frame, part, again, outer), clock = call, self.clock
        repeats = clock.repeats
        if error is not None:
            clock.step_fails(repeats.outer() if again else outer, part=part)
        if again or outer is not None:
            clock.running = part
        if again and repeats.over():
            return
        outer = repeats.outer() if again else outer
        if outer is not None:
            clock.step_ends(outer)
            repeats.learn(self, frame, outer, k=self.k)

    def count(self, held: Held, args: Args, _: Kwargs, frame: FrameType) -> Callable[[], object] | None:
        """Mark a call inside of the window."""
        installed, k = self.installed, self.k
        source = self._source(frame.f_code.co_name)
        if source is None:
            return None
        loops, given = installed.local.loops, installed.registry.given
        call = [source, loops, loops.depth, None]
        held.append((self._counted, call))
        call[3] = source.begin(k)
        waits = self.window.state is WAITING
        if given.asks and frame.f_code.co_name == "train_on_batch":
            given.call([frame.f_locals.get(name) for name in GIVEN], {}, waits=waits)
        loops.depth += 1
        if given.left <= 0 or not waits:
            return None
        return lambda: self.function(given.passed(args[0], source.calls, k))

    def _counted(self, call: Foreign, result: object, error: BaseException | None) -> None:
        source, loops, loops.depth, marker = call
        if marker is not None or error is not None:
            source.over(marker, self.k, failed=error is not None)
        if error is None and self.window.returned is not None:
            self.window.returned(result)

    def _source(self, caller: str) -> StepCounter | None:
        """Return the loop that calls the train function, or None when another one contains it.

        A GAN's discriminator is called twice an iteration, for real and for made-up data: each place
        that calls is a loop of its own.
        """
        trainers = self.trainers
        if caller == "fit" and trainers.fit is None:  # it began before we were there
            trainers.fit = trainers.enter()
        if caller != "train_on_batch" and trainers.fit is not None:
            return trainers.fit
        if self.installed.local.loops.training():  # a loop over a dataset contains this call
            return None
        return self.window.source(StepKind.BATCH, way_here(), here)


class Keras3:
    """`fit` has an epoch iterator; nobody marks its steps."""

    MARKS = False

    @staticmethod
    def steps_per_call(model: Foreign) -> int:
        """Return the steps of one call."""
        return int(model.steps_per_execution)

    @staticmethod
    def read(local: Mapping[str, Foreign]) -> tuple[Foreign, ...] | None:
        """Return a running fit's adapter, datasets, batch size, steps of an epoch and first epoch.

        They are read off local variables; None where these are another function's.
        """
        epochs = local.get("epoch_iterator")
        if epochs is None:
            return None
        adapter = epochs.data_adapter
        # A strategy rebuilds the dataset; the adapter still has the one that we know.
        datasets = (epochs._distributed_dataset, getattr(adapter, "_dataset", None))
        return adapter, datasets, adapter.batch_size, epochs.num_batches, local.get("initial_epoch") or 0


class Keras2:
    """`fit` has a data handler, and marks its steps itself."""

    MARKS = True

    @staticmethod
    def steps_per_call(model: Foreign) -> int:
        """Return the steps of one call."""
        variable = getattr(model, "_steps_per_execution", None)
        return 1 if variable is None else int(variable.numpy())

    @staticmethod
    def read(local: Mapping[str, Foreign]) -> tuple[Foreign, ...] | None:
        """Return the same as that of Keras 3."""
        handler = local.get("data_handler")
        if handler is None:
            return None
        adapter = handler._adapter
        datasets = (getattr(adapter, "_dataset", None), getattr(handler, "_dataset", None))
        batch_size = adapter.batch_size() if hasattr(adapter, "batch_size") else None
        return adapter, datasets, batch_size, handler.inferred_steps, handler._initial_epoch
