"""Whether a sampled call has the arguments of an earlier step's: real frames of functions, which are over."""

import enum
import queue
import types

import numpy as np

from tests.capture.run.kit import *

given_again = agent.load("run.given_again")
Colour = enum.Enum("Colour", "RED BLUE")
TABLE, WORDS = np.arange(90.0).reshape(30, 3), [str(n) for n in range(9_000)]


def load(*values: object, **named: object) -> FrameType:  # noqa: ARG001 - they are what is compared
    return sure(inspect.currentframe())


def own(path: object) -> tuple[FrameType, dict[str, object]]:
    return sure(inspect.currentframe()), locals()


def seen(*calls: FrameType, trains: tuple[CodeType, ...] = ()) -> list[bool | None]:
    """Return what is said of calls, one in each step."""
    known = given_again.GivenAgain()
    return [known.seen(frame, step, trains)[0] for step, frame in enumerate(calls)]


@pytest.mark.parametrize(
    ("first", "second", "again"),
    [
        ("a.csv", "a.csv", True),
        ("a.csv", "b.csv", False),
        ((1, [2.5, {"k": None}]), (1, [2.5, {"k": None}]), True),
        ({"k": 1}, {"k": 2}, False),
        (TABLE, TABLE.copy(), True),
        (TABLE, TABLE + 1.0, False),
        (TABLE, TABLE.T, False),
        (np.zeros(9), np.zeros(9), False),  # of nothing but zeros another may follow
        (WORDS, list(WORDS), True),
        (WORDS, WORDS[1:], False),
        (np.float32(2.0), np.float32(2.0), True),
        (Colour.RED, Colour.RED, True),
        (Colour.RED, Colour.BLUE, False),
        (math, math, True),
        ("a" * 200_000, "a" * 200_000, None),  # too long to be read
        (queue.Queue(), queue.Queue(), None),
        (types.SimpleNamespace(), 1, False),  # an unknown one is no call that was seen
    ],
)
def test_arguments_of_two_calls(first: object, second: object, *, again: bool | None) -> None:
    assert seen(load(first), load(second))[-1] is again


def batches(size: int) -> Iterator[FrameType]:
    for _ in range(size):
        yield sure(inspect.currentframe())


def deleted(path: object) -> FrameType:
    del path
    return sure(inspect.currentframe())


def test_what_is_no_other_call() -> None:
    made = batches(2)
    assert seen(next(made), next(made)) == [None, None]  # a generator that goes on is the same call
    assert seen(deleted("a"), deleted("b")) == [None, None]  # what it was given is not there any more
    frame = load(1)
    assert seen(frame, frame, trains=(load.__code__,)) == [None, None]  # it is under way for many steps
    assert given_again.GivenAgain().seen(load(), 0, ())[0] is not None
    (holds, held), again = own("a"), own("a")[0]
    assert seen(holds, again) == [None, None]  # to read its variables would change the dictionary that holds them
    assert held == {"path": "a"}
    known = given_again.GivenAgain()
    assert [known.seen(load(1), step, ())[0] for step in (3, 3, 4)] == [False, None, True]
    # What the function has let go is not kept alive by its frame.
    assert given_again.GivenAgain().seen(frame, 0, ()) == (False, None)
    assert frame.f_locals == {"values": (1,), "named": {}}


def drawn(rows: int, random_state: int | None) -> FrameType:  # noqa: ARG001 - they are what is compared
    return sure(inspect.currentframe())


@pytest.mark.parametrize(("seed", "again"), [(7, True), (None, None)])
def test_without_a_seed_the_same_arguments_give_other_numbers(seed: int | None, *, again: bool | None) -> None:
    assert seen(drawn(9, seed), drawn(9, seed))[-1] is again


class Reader:
    """An object that is made again and again."""

    def __init__(self, path: str) -> None:
        self.frame, self.path = sure(inspect.currentframe()), path


def test_calls_of_a_library_in_one_step_are_different_where_a_sample_shows_none_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mine = load.__code__.co_filename
    monkeypatch.setattr(given_again, "user_file", lambda path: None if path == mine else path)
    monkeypatch.setattr(given_again, "called", lambda frame: ((load.__code__, 0, frame.f_code), frame))
    known = given_again.GivenAgain()
    other = sure(inspect.currentframe())
    monkeypatch.setattr(given_again, "outward", lambda frame: [] if frame is other else [Under])
    assert [known.seen(load(1), 0, ())[0] for _ in range(2)] == [False, None]  # perhaps the same call
    known.seen(other, 0, (other.f_code,))
    assert known.seen(load(1), 0, ())[0] is True
    known.seen(other, 0, (other.f_code,))
    assert [known.seen(Reader("a").frame, 0, ())[0]] == [False]
    known.seen(other, 0, (other.f_code,))
    assert [known.seen(Reader("a").frame, 0, ())[0]] == [True]


class Under:
    """A frame that calls `load`."""

    f_code, f_lasti = load.__code__, 0


def test_a_dictionary_that_the_program_holds_stays_as_it_is() -> None:
    frame = load(1, scale=2)
    held = frame.f_locals
    assert given_again.GivenAgain().seen(frame, 0, ()) == (False, None)
    assert held == {"values": (1,), "named": {"scale": 2}}


def test_nested_lists_are_compared_up_to_so_many_elements() -> None:
    nested = [[[*range(60)] for _ in range(60)] for _ in range(60)]
    assert seen(load(nested), load(nested)) == [None, None]
    assert seen(load(nested[0][:30]), load(nested[0][:30])) == [False, True]
    known = given_again.GivenAgain()
    known.seen(load(WORDS), 0, ())
    assert all(isinstance(one, int) for of in known.calls.values() for one in of)  # what they are is not kept


class EagerTensor:
    """What TensorFlow's arrays are called, of three rows."""

    shape = (3, 4)


EagerTensor.__module__, EagerTensor.__qualname__ = "tensorflow.python.framework.ops", "EagerTensor"


@pytest.mark.parametrize(
    ("arguments", "single"),
    [
        ((TABLE[:1],), True),
        ((TABLE[None], [TABLE[:1], {"mask": TABLE[:1]}]), True),
        ((TABLE[:1], np.arange(9.0)), True),  # a vector may be anything
        ((TABLE[:1], TABLE[:2]), False),
        ((EagerTensor(),), False),
        ((np.arange(9.0), 3, "a"), None),
        (([TABLE[:1]] * 17,), None),  # a list of many items is none
        ((queue.Queue(), TABLE[:1]), True),  # whose content is not compared
    ],
)
def test_one_item_is_one_row_of_each_array(arguments: tuple[object, ...], *, single: bool | None) -> None:
    frame = load(*arguments)
    known = given_again.GivenAgain()
    assert [known.seen(frame, 0, ())[1], known.seen(frame, 0, ())[1]] == [single, single]  # in each sample
