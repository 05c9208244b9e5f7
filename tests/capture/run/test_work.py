"""What a stack is doing, told by the modules and functions on it: real frames, of modules that are named so."""

from tests.capture.run.kit import *

work = agent.load("run.stacks")

INSTALLED = "/usr/lib/python3.11/site-packages/"


def frames(stack: str) -> tuple[str, str | None]:
    """Call functions of modules, below one of the user's; return the work and what is imported."""
    found: list[tuple[str, str | None]] = []

    def call() -> None:
        frame = caller()
        found.append((work.work_of(frame), work.imported(frame)))

    for one in reversed(["user:main", *stack.split()]):
        module, function = one.split(":")
        path = USERS if module == "user" else INSTALLED + module.replace(".", "/")
        path = "<frozen importlib._bootstrap>" if module.startswith("importlib") else path
        source = f"def {function}(name='pandas.core'):\n    call()\n"
        call = users(source, path, __name__=module, call=call)[function]
    call()
    return found[0]


# Of several kinds of work the first one counts, wherever it is on the stack; the user's line says what is imported:
test_work_and_imports_by_module_and_function = Names(__file__, "work").test(
    {"work": lambda stack: frames(stack)[0], "imported": lambda stack: frames(stack)[1]}
)


def test_frames_of_a_module_without_a_name_are_nobodys() -> None:
    f = users("def f():\n    return sys._getframe()\n", "<string>", sys=sys, __name__=None)["f"]
    assert work.work_of(f()) == "other"


def test_the_call_of_the_outermost_model_is_told_from_those_of_its_layers() -> None:
    path = "/lib/site-packages/keras/src/layers/layer.py"
    layer = users("def __call__(inner):\n    return inner()\n", path, __name__="keras.src.layers.layer")
    call, found = layer["__call__"], []

    def look() -> None:
        found.append(work.calls_model(inspect.currentframe()))

    def evaluates() -> None:
        call(lambda: call(look))

    evaluates()
    look()
    assert [frame and frame.f_code.co_name for frame in found] == ["evaluates", None]
