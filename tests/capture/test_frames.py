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


def wrapped(original: Callable[..., Any], *listeners: Any, faults: Any = None) -> Callable[..., Any]:
    """Return a function as the stream of events makes it of another one."""
    told = streams.Stream(SimpleNamespace(fault=lambda where, error: faults.append((where, error))))
    point = streams.Point(told.log, original, "wrapped")
    own: Callable[..., Any] = told.wrap(point, [(one, "") for one in (*listeners, lambda *_: None)])
    return own


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


# Listeners


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
    told: list[Any] = []
    faults: list[Any] = []
    own = [Listener("a", told), Listener("b", told, begins, over), Listener("c", told)]
    try:
        came = wrapped(original, *own, faults=faults)("xy")
    except BaseException as error:  # noqa: BLE001 - of any kind
        came = error
    return told, came, faults


def test_listeners_hear_of_a_call_before_it_and_in_turn_after_it() -> None:
    told, came, _ = listened()
    assert told == [(name, ("xy",), {}) for name in "abc"] + [(name, 2, "NoneType") for name in "cba"]
    assert came == 2


def test_a_listener_may_answer_instead() -> None:
    told, came, _ = listened(begins=lambda: lambda: 7)
    assert came == 7
    assert [name for name, *_ in told] == ["a", "b", "b", "a"]


def fault() -> None:
    raise ValueError("ours")


@pytest.mark.parametrize("when", ["begins", "over"])
def test_a_fault_of_a_listener_is_noted_and_the_call_goes_on(when: str) -> None:
    told, came, faults = listened(**{when: fault})
    assert came == 2
    assert len(told) == 6
    assert [(where, str(error)) for where, error in faults] == [("wrapped", "ours")]


def leaves() -> None:
    raise SystemExit


@STRIPS
@pytest.mark.parametrize(("when", "last"), [("begins", ["b", "a"]), ("over", ["a"])])
def test_where_a_listener_ends_the_run_the_others_hear_of_it(when: str, last: list[str]) -> None:
    """As a handler of a signal may raise between any two lines of a listener."""
    told, came, _ = listened(**{when: leaves})
    assert [name for name, _, error in told if error == "SystemExit"] == last
    assert isinstance(came, SystemExit)
    assert names(came)[1:] in (["__call__", "leaves"], ["leave", "leaves"])


@STRIPS
def test_where_all_listeners_rest_no_frame_of_ours_is_left_and_failures_are_told() -> None:
    stream, told = streams.Stream(None), list[Any]()
    point = streams.Point(None, fails, "fails")
    point.failing = [told.append]
    stream.rest("rests", rests=True)
    own, error = stream.wrap(point, [(fault, "rests")]), ValueError("x")
    with pytest.raises(ValueError, match="x") as raised:
        own(error)
    assert names(raised.value)[1:] == ["fails"]
    assert told == [error]


def test_listeners_that_rest_are_told_nothing() -> None:
    told: list[Any] = []
    stream = streams.Stream(None)
    own = stream.wrap(streams.Point(None, len, "len"), [(Listener("a", told), ""), (Listener("b", told), "rests")])
    for rests in (True, False):
        stream.rest("rests", rests=rests)
        own("xy")
    assert [name for name, *_ in told] == ["a", "a", "a", "b", "b", "a"]
    stream.rest("rests", rests=True)
    later = stream.wrap(streams.Point(None, len, "len"), [(Listener("c", told), "rests")])
    assert later("xyz") == 3
    assert len(told) == 6
