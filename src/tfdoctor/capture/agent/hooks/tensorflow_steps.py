"""Where TensorFlow shows training: calls of tf.functions, the graphs that they run, gradients and iterators.

Each event is told to the clock of the account, which follows one thread, and to the loops of its thread, by which
the traced window knows its steps.
"""

from __future__ import annotations

import weakref

from ..process import tensorflow_api
from ..process.kept import threads
from ..process.objects import LOOPS, TRAINS, keep, while_traced
from ..run import kinds
from ..run.waiting import is_of_script
from ..stream import WINDOW
from ..window.steps import StepKind
from ..window.window import OPEN, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from ..installed import Installed
    from ..loops import TrainingLoops
    from ..process.declared import Foreign, Graph
    from ..process.objects import Marks
    from ..run.places import CallSite
    from ..stream import Args, Enter, Held, Kwargs, Point, Stream

NONE: Marks = {}  # The marks of a graph that takes no gradients
CALLED, LOOPING = str(StepKind.FUNCTION.value), str(StepKind.GRAPH.value)


def account(stream: Stream, installed: Installed) -> None:
    """Tell the clock of the account."""
    told = AccountedSteps(installed)
    stream.on("function", told.calls)
    stream.on("graph run", told.runs)
    stream.on("trace", lambda _: told.trace)
    stream.on("gradient", told.gradients)
    stream.on_failure("next", told.next_fails)


def count(stream: Stream, installed: Installed) -> None:
    """Tell the loops of each thread, as long as steps are counted for a window."""
    counted = CountedSteps(installed)
    stream.on("function", lambda _: counted.call, WINDOW)
    stream.on("graph run", counted.runs, WINDOW)
    stream.on("gradient", counted.marks)
    stream.on("gradient", counted.gradients, WINDOW)
    stream.on("next", counted.iterators, WINDOW)


class AccountedSteps:
    """What the clock is told; each step comes by, what repeats by a way of its own."""

    def __init__(self, installed: Installed) -> None:
        self.clock, self.graph_marks = installed.recorder.clock, installed.window.graph_marks

    def calls(self, point: Point) -> Enter:
        """Have the clock know the outermost calls of tf.functions."""
        clock, repeats, thread = self.clock, self.clock.repeats, threads.get_ident
        point.notes = repeats
        point.again = lambda args, kwargs, frame: (leave, [args[0], False, True, None, frame, args, kwargs])
        point.within = lambda args, kwargs, frame: (leave, [args[0], True, False, None, frame, args, kwargs])

        def enter(held: Held, args: Args, kwargs: Kwargs, frame: FrameType) -> None:
            if (clock.thread != thread() and not clock.follows()) or clock.inside:
                return
            function, part = args[0], clock.running  # of a step of Keras
            call = [function, part, False, None, frame, args, kwargs]
            held.append((leave, call))
            if part:
                clock.inside, clock.trained = 1, None
            elif repeats.again(function, frame):
                call[2] = True
            else:
                call[3] = clock.function_begins(function._name, frame)

        def leave(call: Foreign, _: object, error: BaseException | None) -> None:
            function, part, again, entered, frame, args, kwargs = call
            if error is not None:
                clock.function_fails(part=part)
            clock.inside, clock.running, repeats.within = 0, part, False
            if (part and clock.current.kind != kinds.TRACE) or (again and repeats.over()):
                return
            clock.caller = frame
            clock.function_ends(repeats.entered if again else entered, function, function._name, args[1:], kwargs)

        return enter

    def runs(self, point: Point) -> Enter:
        """Have it know which of them train, and the graphs that run in none."""
        clock, repeats, marks, thread = self.clock, self.clock.repeats, self.graph_marks, threads.get_ident
        eager = tensorflow_api.context().executing_eagerly
        point.notes = repeats

        def enter(held: Held, args: Args, _: Kwargs, frame: FrameType) -> None:
            function = args[0]
            if repeats.began and repeats.inner not in (None, function) and clock.ours():
                repeats.runs_another()  # than the calls that are noted briefly
            inside = clock.inside and clock.thread == thread()
            if clock.running or clock.thread is None or (inside and repeats.trains(function)):
                return
            of_graph = marks.get(id(function.graph), NONE)
            trains, source = TRAINS in of_graph, LOOPING if LOOPS in of_graph else CALLED
            if trains and eager() and clock.adopt():
                if clock.inside:
                    clock.function_trains(source, function)
                    return
                call: list[CallSite | None] = [None]
                held.append((leave, call))
                call[0] = clock.step_begins_here(frame, source, 1)
            elif clock.inside and clock.current.at in clock.trained_at and clock.ours() and eager():
                clock.function_tests()

        def leave(call: list[CallSite | None], _: object, error: BaseException | None) -> None:
            clock.step_is_over(call[0], error, part=False)

        return enter

    def trace(self, held: Held, _: Args, __: Kwargs, ___: object) -> None:
        """A graph is built."""
        if self.clock.follows():
            held.append((self._built, None))
            self.clock.trace_begins()

    def _built(self, _: None, graph: Foreign, error: BaseException | None) -> None:
        if error is None:
            elements = sum(variable.shape.num_elements() or 0 for variable in graph.variables)
            self.clock.graph_built(int(graph.version), int(elements))

    def gradients(self, _: Point) -> Enter:
        """Have it know the gradients that are taken outside of every function."""
        clock, eager = self.clock, tensorflow_api.context().executing_eagerly

        def enter(_: Held, __: Args, ___: Kwargs, frame: FrameType) -> None:
            ours = clock.follows()
            part = ours and (clock.inside or clock.running)
            if not part and eager() and (ours or (is_of_script(threads.get_ident()) and clock.adopt())):
                clock.step_at(frame)

        return enter

    def next_fails(self, error: BaseException) -> None:
        """Have it know the end of the data."""
        if isinstance(error, StopIteration) and self.clock.ours():
            self.clock.pass_over()


class CountedSteps:
    """What the loops of each thread are told, and the marks of the graphs that train."""

    def __init__(self, installed: Installed) -> None:
        self.installed, self.window = installed, installed.window
        self.registry, self.given = installed.registry, installed.registry.given

    def call(self, held: Held, args: Args, kwargs: Kwargs, frame: FrameType) -> None:
        """Keep the outermost tf.function being called: what is traced meanwhile belongs to it."""
        loops, function = self.installed.local.loops, args[0]
        if loops.function is not None or loops.depth:  # the latter is Keras's
            return
        window, given = self.window, self.given
        held.append((self._called, loops))
        loops.function = window.calling = function
        loops.caller = frame
        if given.asks and self.registry.trainer() is function:
            given.call(args[1:], kwargs, function, waits=window.state is WAITING)

    def _called(self, loops: TrainingLoops, _: object, __: object) -> None:
        loops.function = self.window.calling = loops.caller = None

    def runs(self, _: Point) -> Enter:
        """Note the outermost runs of what trains: of a function's traces only those that take gradients.

        `step(x, y, training=False)` is another trace of the same function, and is no training.
        """
        installed, window, eager = self.installed, self.window, tensorflow_api.context().executing_eagerly

        def enter(held: Held, args: Args, _: Kwargs, frame: FrameType) -> None:
            loops = installed.local.loops
            if loops.running or loops.depth or not eager():
                return
            marks = window.graph_marks.get(id(args[0].graph), NONE)
            if TRAINS in marks:
                held.append((leave, loops))
                loops.running = True
                loops.run_begins(marks, loops.caller or frame)

        def leave(loops: Foreign, result: object, error: BaseException | None) -> None:
            loops.running = False
            loops.run_over(failed=error is not None)
            if error is None and window.returned is not None:
                window.returned(result)

        return enter

    def marks(self, _: Point) -> Enter:
        """While a tf.function is traced, a gradient marks the function."""
        eager = tensorflow_api.context().executing_eagerly
        default_graph = tensorflow_api.of_tensorflow("framework.ops").get_default_graph

        def enter(_: Held, __: Args, ___: Kwargs, ____: object) -> None:
            function = self._function()
            graph = None if eager() else default_graph()
            if function is not None or graph is not None:
                self.mark(function, graph)

        return enter

    def _function(self) -> object:
        """Return the tf.function that is called; replicas are traced in threads of their own."""
        return None if self.window.quiet else self.installed.local.loops.function or self.window.calling

    def mark(self, function: object, graph: Graph | None) -> None:
        """Note on a function, and on its graph, that it trains, and whether in a loop of its own."""
        marks, outermost = while_traced(graph)
        if outermost is not None:
            known = self.window.graph_marks.get(id(outermost), {})
            keep(self.window.graph_marks, outermost, {**known, **marks})
        if function is not None:
            self.registry.trainer = weakref.ref(function)
        if LOOPS in marks:
            self.installed.watch.begin_for_graphs()

    def gradients(self, _: Point) -> Enter:
        """A gradient that is taken outside of every function is a training event."""
        installed, window, eager = self.installed, self.window, tensorflow_api.context().executing_eagerly
        unused = self.registry.unused_gradients

        def enter(held: Held, args: Args, kwargs: Kwargs, _: object) -> None:
            if self._function() is not None or not eager():
                return
            loops = installed.local.loops
            if not loops.depth:
                if window.returned is not None and len(args) > 1:
                    window.returned(args[1])
                loops.gradient()
                if window.leave:
                    window.depart()
            sources = next(iter(args[2:3]), kwargs.get("sources"))
            call = unused.begins(args[0], sources, traced=window.state is OPEN)
            if call is not None:
                held.append((unused.ends, call))

        return enter

    def iterators(self, _: Point) -> Enter:
        """Notice each `__next__` before it runs, and the end of the data."""
        installed, window, given = self.installed, self.window, self.given
        eager = tensorflow_api.context().executing_eagerly

        def enter(held: Held, args: Args, _: Kwargs, __: object) -> None:
            loops = installed.local.loops
            if loops.depth or not eager():
                return
            loops.before(args[0])
            if window.leave:
                window.depart()
            held.append((leave, (loops, id(args[0]))))
            loops.depth = 1

        def leave(call: Foreign, batch: object, error: BaseException | None) -> None:
            loops, iterator = call
            loops.depth = 0
            if isinstance(error, StopIteration):
                loops.ended(iterator)
            elif error is None and given.left and window.state is WAITING:
                given.batch(batch)

        return enter
