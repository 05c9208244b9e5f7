"""Loops in bytecode: what a call that trains repeats, and what only stands beside the loop."""

from tests.capture.run.kit import *

loops = agent.load("run.loops")


def seen(source: str) -> dict[str, tuple[CodeType, int, bool]]:
    """Run a user's source, and return the frame and the instruction of each call of `mark`."""
    found: dict[str, Any] = {}

    def mark(name: str, value: object = None) -> object:
        frame = caller()
        found[name] = (frame.f_code, frame.f_lasti, loops.in_a_loop(frame))
        return value

    users(source, mark=mark, xs=[0, 1, 2])
    return found


TEXTS = text_parts(Path(__file__).with_name("loops.txt"))
"""Sources by their names; in those without a space, what is marked as "in" is in the loop."""
CASES = {name: source for name, source in TEXTS.items() if " " not in name} | {
    "many-names": (
        "\n".join(f"a{n} = {n}" for n in range(300)) + "\nfor x in xs:\n    mark('in', (a1, a299))\nmark('after')\n"
    ),
    "long-body": "for x in xs:\n" + "    y = x + 1\n" * 500 + "    mark('in')\nmark('after')\n",
}


@each(*CASES.values(), ids=[*CASES])
def test_what_a_loop_holds(source: str) -> None:
    marks = seen(source)
    assert {name: inside for name, (_, _, inside) in marks.items()} == {name: name == "in" for name in marks} != {}


def test_the_innermost_loop_is_the_smallest() -> None:
    marks = seen(TEXTS["innermost loop"])
    inner = {name: loops.around(code, at)[0] for name, (code, at, _) in marks.items()}
    assert inner["step"] == inner["metric"]
    assert inner["epoch"] == inner["end"]
    assert len({inner["step"], inner["epoch"], inner["validation"]}) == 3


def test_what_follows_a_loop_with_a_handler_is_in_none() -> None:
    """Python 3.11 puts the handler behind what follows the loop."""
    marks = seen(TEXTS["handler within a loop"])
    step, epoch = (loops.around(*marks[name][:2])[0] for name in ("step", "epoch"))
    assert step != epoch
    assert not loops.holds(step, marks["epoch"][1])
    assert not marks["export"][2]


def test_waiting_for_another_generator_is_no_loop() -> None:
    source = "def inner():\n    yield mark('out')\ndef outer():\n    yield from inner()\nlist(outer())\n"
    outer = users(source, mark=print)["outer"].__code__
    assert (loops.loops(outer), seen(source)["out"][2]) == ([], False)


# Whether a line is reached again and again


@cases(
    ("work()\n", False, "numpy.lib"),
    ("for x in (1, 2):\n    work()\n", True, "numpy.lib"),
    ("def f():\n    work()\nf()\n", False, "numpy.lib"),
    ("def f():\n    work()\nfor x in (1, 2):\n    f()\n", True, "numpy.lib"),
    ("def f():\n    work()\neach(f)\n", True, "numpy.lib"),
    ("def f():\n    work()\neach(f)\n", None, "somebody.elses"),  # unknown
)
def test_whether_a_line_is_reached_again(source: str, expected: object, module: str) -> None:
    """The user's line calls `work`; `each` is a library's."""
    found: list[bool | None] = []
    library = users("def each(f):\n    f()\n", "/lib/python3.11/site-packages/lib.py", __name__=module)
    names = {"each": library["each"], "__name__": "user"}
    users(source, work=lambda: found.append(loops.repeats(caller())), **names)
    assert found[0] is expected


VALIDATED = """
for epoch in (1, 2):
    for x in (1, 2):
        step()
    for y in (1, 2):
        print(y, y, y, y, end="")
        work()
"""


@cases(
    ("work()\n", 0),
    ("for x in (1, 2):\n    for y in (1, 2):\n        work()\n", 2),
    ("def f():\n    work()\nfor x in (1, 2):\n    f()\n", 1),
    ("def f():\n    work()\nfor epoch in (1, 2):\n    step()\n    f()\n", 0),
    ("for epoch in (1, 2):\n    step()\n    work()\n", 0),
    ("for epoch in (1, 2):\n    for x in (1, 2):\n        step()\n        work()\n", 0),
    (VALIDATED, 1),
)
def test_loops_around_a_line_without_those_that_train(source: str, expected: int) -> None:
    assert looks(source, lambda known, frame: loops.loops_around(frame, known))[-1] == ("", expected)


# The loops around certain calls


def looks(source: str, look: Callable[[Any, FrameType], object]) -> list[tuple[str, object]]:
    """Run a source whose `step` trains; return what is told at each `work`, with what it is called."""
    known, found = loops.CalledLoops(), list[tuple[str, object]]()
    work = lambda name="": found.append((name, look(known, caller())))  # noqa: E731
    users(source, step=lambda: known.add(caller()), work=work)
    return found


def test_loops_around_calls_hold_what_is_beside_the_call_and_below_it() -> None:
    told = looks(TEXTS["beside the call and below"], lambda known, frame: known.hold(frame))
    held = dict(told)  # of metric, the last time at the epoch's end
    assert held == {**dict.fromkeys(("metric", "epoch begins", "epoch", "after"), False), "batch": True}


def called(source: str) -> list[tuple[str, object]]:
    """Return the function that the loop calls and that trains at each `work`, where it begins and is called."""

    def told(known: Any, frame: FrameType) -> object:
        found = known.called(frame)
        return found and (found[0].co_name, found[0].co_firstlineno, found[1].f_lineno)

    return looks(source, told)


def test_the_function_that_the_loop_calls_and_that_trains_is_the_step() -> None:
    """Trap: the loop calls a function that makes the batches as well."""
    taken = ("trains", 4, 11)
    turn = [("batch", None), ("inner", taken), ("step", taken), ("loop", None)]
    assert called(TEXTS["calls of the loop"]) == [*turn, *turn, ("batch", None), ("after", None)]


def test_a_step_that_the_loop_itself_takes_is_no_function() -> None:
    assert called("def part():\n    work()\nfor x in (1, 2):\n    step()\n    part()\n") == [("", None)] * 2


def test_loops_around_calls_are_learned_once_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops.CalledLoops, "MOST", 20)
    known, new = loops.CalledLoops(), list[bool]()
    source = "".join(f"for x in (1, 2):\n    step()  # {n}\n" for n in range(30))
    users(source, step=lambda: new.append(known.add(caller())))
    assert new[:4] == [True, False, True, False]
    assert sum(new) == len(known.known) == 20
