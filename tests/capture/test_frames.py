"""No frame of ours is in a traceback that the script sees, nor in its way of warnings and signatures."""

import traceback
import warnings

from tests.capture.kit import *

streams: Any = agent.load("stream")
frames: Any = agent.load("process.frames")
STRIPS = pytest.mark.skipif(not frames.STRIPS, reason="before Python 3.11 frames cannot be removed")


def fails(error: BaseException) -> None:
    """Raise what it is given."""
    raise error


def wrapped(original: Callable[..., Any], *listeners: Any, faults: Any = None) -> Any:
    """Return a function as the stream of events makes it of another one."""
    told = streams.Stream(SimpleNamespace(fault=lambda where, error: faults.append((where, error))))
    point = streams.Point(told.log, original, "wrapped")
    return told.wrap(point, [(one, "") for one in (*listeners, lambda *_: None)])


def names(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def raised(call: Callable[..., object], error: BaseException) -> list[str]:
    """Return the functions of the traceback of an error that a call is given and raises."""
    with pytest.raises(type(error)) as caught:
        call(error)
    assert (caught.value.__cause__, caught.value.__context__) == (error.__cause__, None)
    return names(caught.value)[1:]


def between(error: BaseException) -> None:
    """Call a wrapped function, itself wrapped: a frame of the script between ours, which stays."""
    wrapped(fails)(error)


@STRIPS
@each(ValueError, KeyboardInterrupt, SystemExit, StopIteration, GeneratorExit)
def test_an_exception_carries_no_frame_of_ours(kind: type[BaseException]) -> None:
    for call, frames in ((wrapped(wrapped(fails)), ["fails"]), (wrapped(between), ["between", "fails"])):
        error = kind("x")
        error.__cause__ = OSError("it")
        assert raised(call, error) == frames


@STRIPS
def test_a_module_that_cannot_be_imported_has_no_frame_of_ours() -> None:
    broken = SimpleNamespace(exec_module=fails)
    load = agent.load("process.imports").Loader(broken, [], None).exec_module
    assert raised(load, ImportError("x")) == ["fails"]


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
    assert (hidden.__name__, hidden.__doc__, hidden.__wrapped__) == ("fails", fails.__doc__, fails)


class Listener:
    """Notes what it is told, and does what a test says as the call begins or is over."""

    def __init__(self, name: str, told: list[Any], begins: Any = None, over: Any = None) -> None:
        self.name, self.told, self.begins, self.over = name, told, begins, over

    def __call__(self, held: list[Any], args: Any, kwargs: Any, frame: Any) -> Any:
        held.append((self.leave, frame))
        self.told.append((self.name, args, kwargs))
        return self.begins() if self.begins else None

    def leave(self, frame: Any, result: object, error: BaseException | None) -> None:
        assert frame.f_code.co_filename == __file__
        self.told.append((self.name, result, type(error).__name__))
        if self.over:
            self.over()


def listened(begins: Any = None, over: Any = None, original: Any = len) -> tuple[list[Any], Any, list[Any]]:
    """Call a function between three listeners; return what they were told, what came of it, and the faults."""
    told, faults = list[Any](), list[Any]()
    own = [Listener("a", told), Listener("b", told, begins, over), Listener("c", told)]
    try:
        came = wrapped(original, *own, faults=faults)("xy")
    except BaseException as error:  # noqa: BLE001 - of any kind
        came = error
    return told, came, faults


def test_listeners_hear_of_a_call_before_it_and_in_turn_after_it() -> None:
    told, came, _ = listened()
    assert (came, told[:3], told[3:]) == (2, [(n, ("xy",), {}) for n in "abc"], [(n, 2, "NoneType") for n in "cba"])


def test_a_listener_may_answer_instead() -> None:
    told, came, _ = listened(begins=lambda: lambda: 7)
    assert (came, [name for name, *_ in told]) == (7, ["a", "b", "b", "a"])


def fault() -> None:
    raise ValueError("ours")


@each("begins", "over")
def test_a_fault_of_a_listener_is_noted_and_the_call_goes_on(when: str) -> None:
    told, came, faults = listened(**{when: fault})
    assert (came, len(told)) == (2, 6)
    assert [(where, str(error)) for where, error in faults] == [("wrapped", "ours")]


def leaves() -> None:
    raise SystemExit


@STRIPS
@cases(("begins", ["b", "a"]), ("over", ["a"]))
def test_where_a_listener_ends_the_run_the_others_hear_of_it(when: str, last: list[str]) -> None:
    """As a handler of a signal may raise between any two lines of a listener."""
    told, came, _ = listened(**{when: leaves})
    assert [name for name, _, error in told if error == "SystemExit"] == last
    assert type(came) is SystemExit
    assert names(came)[1:] in (["__call__", "leaves"], ["leave", "leaves"])


@STRIPS
def test_where_all_listeners_rest_no_frame_of_ours_is_left_and_failures_are_told() -> None:
    stream, told = streams.Stream(None), list[Any]()
    point = streams.Point(None, fails, "fails")
    point.failing = [told.append]
    stream.rest("rests", rests=True)
    error = ValueError("x")
    assert (raised(stream.wrap(point, [(fault, "rests")]), error), told) == (["fails"], [error])


def test_listeners_that_rest_are_told_nothing() -> None:
    told, stream, point = list[Any](), streams.Stream(None), streams.Point(None, len, "len")
    own = stream.wrap(point, [(Listener("a", told), ""), (Listener("b", told), "rests")])
    for rests in (True, False):
        stream.rest("rests", rests=rests)
        own("xy")
    assert [name for name, *_ in told] == ["a", "a", "a", "b", "b", "a"]
    stream.rest("rests", rests=True)
    later = stream.wrap(streams.Point(None, len, "len"), [(Listener("c", told), "rests")])
    assert later("xyz") == 3
    assert len(told) == 6


def test_all_lines_that_lead_to_an_operation_of_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the function's own frame around a body of AutoGraph's, and once for one that calls itself."""
    stack = agent.load("process.stack")
    monkeypatch.setattr(stack, "user_file", lambda path: path if path == "t.py" else None)
    lines = ("<module>", 90), ("main", 80), ("step", 40), ("deep", 31), ("deep", 30), ("body", 21), ("body", 20)
    trace = [SimpleNamespace(filename="t.py", name=name, lineno=line) for name, line in lines]
    trace.insert(4, SimpleNamespace(filename="keras/layer.py", name="__call__", lineno=1))
    assert stack.traced_line(trace)[0] == tuple(("t.py", line) for line in (20, 30, 40, 80, 90))
