"""The Python numbers that a traced function gets, and the lines that assigned them."""

from tests.capture.run.kit import *
from tfdoctor.capture.sources.frames import At
from tfdoctor.capture.sources.makers import assigned
from tfdoctor.source_code.tree import SyntaxTree

traced_arguments = agent.load("run.traced_arguments")


def numbers(source: str) -> list[tuple[str, str, int | None]]:
    """Return what is told of the calls of `step(x, lr, kind)` that a user's source makes."""
    found: list[tuple[str, str, int | None]] = []
    text = f"def step(x, lr, kind='a'): ...\n{source}"

    def function(*args: object, **kwargs: object) -> object:
        frame = caller()
        made, at = SimpleNamespace(python_function=frame.f_globals["step"]), At(SyntaxTree(text), frame.f_lineno)
        for one in traced_arguments.traced_numbers(made, args, kwargs):
            line = assigned(at, "f", len(args) + len(kwargs), one["place"])
            found.append((one["name"], one["value"], line))
        return args[0]

    users(text, f=function, x=np.zeros(3), np=np)
    return found


@cases(
    ("f(x, lr, 'mean')", [("lr", "0.25", 3), ("kind", "'mean'", None)]),
    ("f(x, rate)", [("lr", "0.5", None)]),  # a parameter: no line assigns it
    ("f(x, lr=lr)", [("lr", "0.25", 3)]),
    ("f(x, kind=rate, lr=lr)", [("kind", "0.5", None), ("lr", "0.25", 3)]),
    ("f(x, lr * 2)", [("lr", "0.5", None)]),
    ("f(x, one * 2, lr + lr)", [("lr", "2.0", None), ("kind", "0.5", None)]),
    ("f(x, one, lr + one)", [("lr", "1.0", None), ("kind", "1.25", None)]),
    ("f(f(x, lr), rate)", [("lr", "0.25", None), ("lr", "0.5", None)]),  # which of the calls is not certain
    ("f(max(x[0], lr), lr)", [("x", "0.25", None), ("lr", "0.25", 3)]),
    ("f(x, one if yes else lr, lr)", [("lr", "1.0", None), ("kind", "0.25", 3)]),
    ("f(x, one or lr)", [("lr", "1.0", None)]),
    ("f(x, *rest)", [("lr", "0.25", None)]),
    ("f(x, **{'lr': lr})", [("lr", "0.25", None)]),
    ("f(x, np.float64(lr))", []),  # becomes a tensor
    ("f(x, x)", []),
    ("f(x, True)", [("lr", "True", None)]),
    ("f(x, 'a' * 20 + 'b' * 20)", [("lr", "'aaaaaaaa...bbbbbbbbbbbb'", None)]),
    ("f(x, 10 ** 5000)", [("lr", hex(10**5000)[:24], None)]),
)
def test_numbers_are_told_with_the_line_that_assigned_them(call: str, expected: object) -> None:
    run = f"def run(rate, one=1.0, yes=True):\n    lr = rate / 2\n    rest = (lr,)\n    {call}\nrun(0.5)\n"
    assert numbers(run) == expected


def test_a_call_in_a_module_is_read_as_well() -> None:
    source = "one = 1.0\nlr = 0.5\nf(x, one * 2, kind=lr)\n"
    assert numbers(source) == [("lr", "2.0", None), ("kind", "0.5", 3)]


SEARCHES = {
    "of the module": ("lr = 0.1\nf(x, lr)\n", 2),
    "of the loop": ("for lr in (0.1,):\n    f(x, lr)\n", 2),
    "the last above": ("lr = 0.2\nif x is not None:\n    lr = 0.1\nf(x, lr)\n", 4),
    "of the outer loop": (
        "lr = 0.2\nfor trial in range(1):\n    lr = 0.1\n    for epoch in range(1):\n        f(x, lr)\n",
        4,
    ),
    "below, for the next round": ("lr = 0.1\nwhile lr < 1:\n    f(x, lr)\n    lr *= 10\n", 5),
    "above within the loop": ("lr = 1\nwhile lr == 1:\n    lr = 0.1\n    f(x, lr)\n    lr += 1\n", 4),
    "no line below": ("def run(lr):\n    f(x, lr)\n    lr = 2\nrun(0.1)\n", None),
}


@cases(*SEARCHES.values(), ids=[*SEARCHES])
def test_the_assignment_counts_that_comes_before_the_call_as_loops_repeat_it(source: str, line: int | None) -> None:
    assert numbers(source)[0] == ("lr", "0.1", line)


def of(python: object) -> Any:
    """Return a tf.function of a Python function."""
    return SimpleNamespace(python_function=python)


def told(python: object, *args: object) -> list[tuple[str, str]]:
    return [(one["name"], one["value"]) for one in traced_arguments.traced_numbers(of(python), args, {})]


def test_a_function_is_defined_below_its_wrappers() -> None:
    step = users("\ndef step(x): ...\n")["step"]
    functions = [of(functools.partial(step, 1)), of(len), SimpleNamespace()]
    assert [*map(traced_arguments.defined, functions)] == [(USERS, 2), None, None]


WRAPS = """
def timed(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)
    return wrapper

@timed
def step(x): ...
"""


def test_a_function_is_defined_where_its_decorator_stands_and_not_in_that() -> None:
    made = of(users(WRAPS, functools=functools)["step"])
    assert traced_arguments.defined(made) == (USERS, 8)
    made.python_function.__wrapped__ = made.python_function  # a circle ends as well
    assert traced_arguments.defined(made) == (USERS, 3)


class Target:
    """What TensorFlow gives a method as self while it is traced."""


def test_self_is_no_argument_of_a_method() -> None:
    trainer = users("class Trainer:\n    def step(self, x, lr): ...\n")["Trainer"]
    source = "@functools.wraps(method)\ndef bound_method_wrapper(*args, **kwargs): ...\n"
    path, method = "/env/lib/python3.11/site-packages/tensorflow/function.py", MethodType(trainer.step, Target())
    bound = users(source, path, functools=functools, method=method)["bound_method_wrapper"]
    for step, args in ((MethodType(trainer.step, trainer()), ()), (trainer.step, (trainer(),)), (bound, ())):
        assert told(step, *args, 3.0, 0.1) == [("x", "3.0"), ("lr", "0.1")]
    assert traced_arguments.defined(of(bound)) == (USERS, 2)


def test_a_partial_function_has_got_arguments_already() -> None:
    step = users("def step(model, x, lr): ...\n")["step"]
    assert told(functools.partial(step, None), 3.0, 0.1) == []


def test_few_numbers_of_a_call_are_told() -> None:
    many = users("def step(" + ", ".join(f"a{i}" for i in range(20)) + "): ...\n")["step"]
    assert len(told(many, *range(20))) == traced_arguments.MOST
