"""The compiled function that a line calls is named by the call's own code, where Python has positions."""

from math import factorial

from tests.capture.kit import *
from tfdoctor.capture.agent.run.compiled_calls import compiled_call

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="instructions have no positions")

ARRAYS = [np.zeros((500, 500)) for _ in range(2)]
ROWS = np.zeros((300, 300))
METHOD = "argsort"
NUMBERS = [*range(9000, 0, -1)]


def seen(work: Callable[[], object]) -> set[str]:
    """Return what is named while a function runs again and again in another thread."""
    over, found = threading.Event(), set()

    def run() -> None:
        while not over.is_set():
            work()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        for _ in range(40):
            frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001 - as the sampler
            if frame is not None and frame.f_code is work.__code__:
                found.add(compiled_call(frame))
            over.wait(0.002)
    finally:
        over.set()
        thread.join()
    return found - {""}


def work_of_python() -> int:
    total = 0
    for number in range(100000):
        total += number * number
    return total


def local_name(rows: Any = ROWS) -> object:
    return rows.argsort()


@cases(
    (lambda: np.concatenate(ARRAYS), "numpy.concatenate"),
    (lambda: np.random.rand(90000), "numpy.random.rand"),  # of a nested module
    (lambda: ROWS.argsort(), "numpy.ndarray.argsort"),  # noqa: PLW0108 - its line is seen
    (lambda: ROWS @ ROWS, "numpy.matmul"),
    (lambda: math.factorial(3000), "math.factorial"),
    (lambda: sorted(NUMBERS, key=None), "builtins.sorted"),
    (lambda: factorial(3000), "math.factorial"),
    (local_name, ""),  # what it stands for is not known
    (lambda: getattr(ROWS, METHOD)(), ""),  # noqa: PLW0108 - what a call returns is called
    ids=[
        "module",
        "nested module",
        "method",
        "product",
        "builtin",
        "by keyword",
        "from a module",
        "local",
        "result",
    ],
)
def test_a_function_of_a_module_and_a_method_of_an_object_of_the_file_are_named(work: Any, name: str) -> None:
    assert seen(work) == {name} - {""}


def test_a_function_of_many_names_is_told_as_one_of_few(tmp_path: Path) -> None:
    """The number of a name has more than one byte then."""
    names: dict[str, Any] = {"NUMBERS": NUMBERS, **{f"name{at}": 0 for at in range(700)}}
    text = "".join(f"    name{at}\n" for at in range(700))
    exec(compile(f"def work():\n{text}    return sorted(NUMBERS)", str(tmp_path / "train.py"), "exec"), names)
    assert seen(names["work"]) == {"builtins.sorted"}


def test_a_file_that_changed_since_gives_no_name(tmp_path: Path) -> None:
    """A regression: the text of the file was taken for that of the call."""
    code, names = "work = lambda: sorted(range(9000, 0, -1))", dict[str, Any]()
    (tmp_path / "train.py").write_text(code.replace("sorted", "sum   "))
    exec(compile(code, str(tmp_path / "train.py"), "exec"), names)
    assert "builtins.sorted" in seen(names["work"]) <= {"builtins.sorted", "builtins.range"}


@cases(
    (lambda: sorted(range(9000, 0, -1)), {"builtins.sorted", "builtins.range"}),
    (work_of_python, {"builtins.range"}),
)
def test_functions_of_python_are_named_and_its_own_work_has_no_name(work: Any, names: set[str]) -> None:
    assert seen(work) <= names
