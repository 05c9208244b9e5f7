"""The compiled function that a line calls is named by the call's own text, where Python has positions."""

import math
from math import factorial

from tests.capture.kit import *
from tfdoctor.capture.agent.run.compiled_calls import compiled_call

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="instructions have no positions")

ARRAYS = [np.zeros((500, 500)) for _ in range(2)]
ROWS = np.zeros((300, 300))


def seen(work: Callable[[], object]) -> set[str]:
    """Return what is named while a function runs again and again in another thread."""
    over, found = threading.Event(), set()

    def run() -> None:
        while not over.is_set():
            work()

    thread = threading.Thread(target=run)
    thread.start()
    for _ in range(40):
        frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001 - as the sampler
        if frame is not None and frame.f_code is work.__code__:
            found.add(compiled_call(frame))
        over.wait(0.002)
    over.set()
    thread.join()
    return found - {""}


def test_a_function_of_a_module_is_named() -> None:
    assert seen(lambda: np.concatenate(ARRAYS)) == {"numpy.concatenate"}


def test_a_function_of_a_nested_module_is_named() -> None:
    assert seen(lambda: np.random.rand(90000)) == {"numpy.random.rand"}


def test_a_method_of_an_object_of_the_file_is_named() -> None:
    assert seen(lambda: ROWS.argsort()) == {"numpy.ndarray.argsort"}  # noqa: PLW0108 - its line is seen


def test_functions_of_python_are_named() -> None:
    assert seen(lambda: sorted(range(9000, 0, -1))) <= {"builtins.sorted", "builtins.range"}
    assert seen(lambda: math.factorial(3000)) == {"math.factorial"}
    assert seen(lambda: factorial(3000)) == {"math.factorial"}


def test_work_of_python_itself_has_no_name() -> None:
    def work() -> int:
        total = 0
        for number in range(100000):
            total += number * number
        return total

    assert seen(work) <= {"builtins.range"}


def test_what_a_local_name_stands_for_is_not_known() -> None:
    def work(rows: object = ROWS) -> object:
        return rows.argsort()  # type: ignore[attr-defined]  # an array

    assert seen(work) == set()
