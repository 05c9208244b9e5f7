"""Loops in bytecode: what a call that trains repeats, and what only stands beside the loop."""

from types import CodeType

from tests.capture.kit import *

loops = agent.load("run.loops")

USERS = "/project/train.py"


def caller() -> FrameType:
    """Return the frame that called the caller's function."""
    return inspect.stack()[2].frame


def seen(source: str) -> dict[str, tuple[CodeType, int, bool]]:
    """Run a user's source, and return the frame and the instruction of each call of `mark`."""
    found: dict[str, Any] = {}

    def mark(name: str, value: object = None) -> object:
        frame = caller()
        found[name] = (frame.f_code, frame.f_lasti, loops.in_a_loop(frame))
        return value

    exec(compile(source, USERS, "exec"), {"mark": mark, "xs": [0, 1, 2]})
    return found


CASES = {
    "for": "mark('out')\nfor x in xs:\n    mark('in')\nmark('after')\n",
    "for-else": "for x in xs:\n    mark('in')\nelse:\n    mark('after')\n",
    "while": "n = 3\nwhile n:\n    n -= 1\n    mark('in')\nmark('after')\n",
    "while-true": ("n = 3\nwhile True:\n    mark('in')\n    n -= 1\n    if not n:\n        break\nmark('after')\n"),
    "condition": "n = [3]\nwhile mark('in', n[0]):\n    n[0] -= 1\nmark('after')\n",
    "continue": "for x in xs:\n    if x == 1:\n        continue\n    mark('in')\nmark('after')\n",
    "with": (
        "import contextlib\nfor x in xs:\n    with contextlib.suppress(ValueError):\n        mark('in')\n"
        "        raise ValueError\nmark('after')\n"
    ),
    "around-with": (
        "import contextlib\nwith contextlib.nullcontext():\n    mark('out')\n    for x in xs:\n"
        "        mark('in')\n    mark('after')\n"
    ),
    "try": ("for x in xs:\n    try:\n        mark('in')\n    except ValueError:\n        pass\nmark('after')\n"),
    "handler": (
        "for x in xs:\n    try:\n        1 / 0\n    except ZeroDivisionError:\n        mark('in')\nmark('after')\n"
    ),
    "finally": "for x in xs:\n    try:\n        pass\n    finally:\n        mark('in')\nmark('after')\n",
    "around-try": "try:\n    for x in xs:\n        mark('in')\nfinally:\n    mark('after')\n",
    "handler-after": (
        "for x in xs:\n    mark('in')\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    mark('after')\n"
    ),
    "before-break": "for x in xs:\n    mark('in')\n    if x == 1:\n        mark('last')\n        break\n",
    "comprehension": "[mark('in') for x in xs]\nmark('after')\n",
    "generator": (
        "def batches():\n    mark('out')\n    for x in xs:\n        mark('in')\n        yield x\n"
        "    mark('after')\nlist(batches())\n"
    ),
    "match": (
        "for x in xs:\n    match x:\n        case 1:\n            mark('in')\n        case _:\n"
        "            pass\nmark('after')\n"
    ),
    "function": "def step():\n    mark('out')\nfor x in xs:\n    step()\n",
    "many-names": (
        "\n".join(f"a{n} = {n}" for n in range(300)) + "\nfor x in xs:\n    mark('in', (a1, a299))\nmark('after')\n"
    ),
    "long-body": "for x in xs:\n" + "    y = x + 1\n" * 500 + "    mark('in')\nmark('after')\n",
}


@pytest.mark.parametrize("source", CASES.values(), ids=CASES)
def test_what_a_loop_holds(source: str) -> None:
    marks = seen(source)
    assert {name: inside for name, (_, _, inside) in marks.items()} == {name: name == "in" for name in marks}
    assert len(marks) > 0


def test_the_innermost_loop_is_the_smallest() -> None:
    marks = seen(
        "for epoch in xs:\n    mark('epoch')\n    for x in xs:\n        mark('step')\n        mark('metric')\n"
        "    for x in xs:\n        mark('validation')\n    mark('end')\n"
    )
    inner = {name: loops.around(code, at)[0] for name, (code, at, _) in marks.items()}
    assert inner["step"] == inner["metric"]
    assert inner["epoch"] == inner["end"]
    assert len({inner["step"], inner["epoch"], inner["validation"]}) == 3


def test_what_follows_a_loop_with_a_handler_is_in_none() -> None:
    """Python 3.11 puts the handler behind what follows the loop."""
    source = (
        "def train():\n    for epoch in xs:\n        for x in xs:\n            try:\n                mark('step')\n"
        "            except ValueError:\n                continue\n        mark('epoch')\n"
        "    mark('export')\ntrain()\n"
    )
    marks = seen(source)
    step, epoch = (loops.around(*marks[name][:2])[0] for name in ("step", "epoch"))
    assert step != epoch
    assert not loops.holds(step, marks["epoch"][1])
    assert not marks["export"][2]


def test_waiting_for_another_generator_is_no_loop() -> None:
    marks = seen("def inner():\n    yield mark('out')\ndef outer():\n    yield from inner()\nlist(outer())\n")
    outer = next(
        code
        for code in compile("def outer():\n    yield from inner()\n", USERS, "exec").co_consts
        if hasattr(code, "co_code")
    )
    assert loops.loops(outer) == []
    assert not marks["out"][2]


# Whether a line is reached again and again


def repeated(source: str, module: str = "numpy.lib") -> bool | None:
    """Return what `repeats` says of the user's line that calls `work`; `each` is a library's."""
    found: list[bool | None] = []

    def work() -> None:
        found.append(loops.repeats(caller()))

    library: dict[str, Any] = {"__name__": module}
    exec(compile("def each(f):\n    f()\n", "/lib/python3.11/site-packages/lib.py", "exec"), library)
    exec(compile(source, USERS, "exec"), {"work": work, "each": library["each"], "__name__": "user"})
    return found[0]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("work()\n", False),
        ("for x in (1, 2):\n    work()\n", True),
        ("def f():\n    work()\nf()\n", False),
        ("def f():\n    work()\nfor x in (1, 2):\n    f()\n", True),
        ("def f():\n    work()\neach(f)\n", True),
    ],
)
def test_whether_a_line_is_reached_again(source: str, expected: bool) -> None:  # noqa: FBT001
    assert repeated(source) is expected


def test_whether_a_line_is_reached_again_is_unknown_below_other_libraries() -> None:
    assert repeated("def f():\n    work()\neach(f)\n", module="somebody.elses") is None


VALIDATED = """
for epoch in (1, 2):
    for x in (1, 2):
        step()
    for y in (1, 2):
        print(y, y, y, y, end="")
        work()
"""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("work()\n", 0),
        ("for x in (1, 2):\n    for y in (1, 2):\n        work()\n", 2),
        ("def f():\n    work()\nfor x in (1, 2):\n    f()\n", 1),
        ("def f():\n    work()\nfor epoch in (1, 2):\n    step()\n    f()\n", 0),
        ("for epoch in (1, 2):\n    step()\n    work()\n", 0),
        ("for epoch in (1, 2):\n    for x in (1, 2):\n        step()\n        work()\n", 0),
        (VALIDATED, 1),
    ],
)
def test_loops_around_a_line_without_those_that_train(source: str, expected: int) -> None:
    known, found = loops.CalledLoops(), []
    names = {"step": lambda: known.add(caller()), "work": lambda: found.append(loops.loops_around(caller(), known))}
    exec(compile(source, USERS, "exec"), names)
    assert found[-1] == expected


# The loops around certain calls


def test_loops_around_calls_hold_what_is_beside_the_call_and_below_it() -> None:
    known = loops.CalledLoops()
    held: dict[str, bool] = {}

    def step() -> None:
        known.add(caller())

    def look(name: str) -> None:
        held[name] = known.hold(caller())

    source = (
        "def batch():\n    step()\n    look('batch')\ndef metric():\n    look('metric')\n"
        "for epoch in (1, 2):\n    look('epoch begins')\n    for x in (1, 2):\n        batch()\n        metric()\n"
        "    look('epoch')\n    metric()\nlook('after')\n"
    )
    exec(compile(source, USERS, "exec"), {"step": step, "look": look})
    assert held == {
        "batch": True,
        "metric": False,  # the last time at the epoch's end
        "epoch begins": False,
        "epoch": False,
        "after": False,
    }


def test_the_function_that_the_loop_calls_and_that_trains_is_the_step() -> None:
    """Trap: the loop calls a function that makes the batches as well."""
    known = loops.CalledLoops()
    found: dict[str, list[object]] = {}
    source = (
        "def inner():\n    train()\n    look('inner')\ndef step():\n    inner()\n    look('step')\n"
        "def batch():\n    look('batch')\n"
        "for x in (1, 2):\n    batch()\n    step()\n    look('loop')\nbatch()\nlook('after')\n"
    )

    def look(name: str) -> None:
        called = known.called(caller())
        found.setdefault(name, []).append(
            called and (called[0].co_name, called[0].co_firstlineno, called[1].f_lineno)
        )

    exec(compile(source, USERS, "exec"), {"train": lambda: known.add(caller()), "look": look})
    step = ("step", 4, 11)
    assert found == {
        "inner": [step] * 2,
        "step": [step] * 2,
        "batch": [None] * 3,
        "loop": [None] * 2,
        "after": [None],
    }


def test_a_step_that_the_loop_itself_takes_is_no_function() -> None:
    known = loops.CalledLoops()
    found: list[object] = []
    source = "def part():\n    look()\nfor x in (1, 2):\n    train()\n    part()\n"
    names = {"train": lambda: known.add(caller()), "look": lambda: found.append(known.called(caller()))}
    exec(compile(source, USERS, "exec"), names)
    assert found == [None, None]


def test_loops_around_calls_are_learned_once_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops.CalledLoops, "MOST", 20)
    known = loops.CalledLoops()
    new: list[bool] = []
    source = "".join(f"for x in (1, 2):\n    step()  # {n}\n" for n in range(30))
    exec(compile(source, USERS, "exec"), {"step": lambda: new.append(known.add(caller()))})
    assert new[:4] == [True, False, True, False]
    assert sum(new) == len(known.known) == 20
