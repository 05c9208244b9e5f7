"""debugging-off: the line that turns an aid for debugging on is removed where nothing decides about it."""

import pytest

from tests.edits.editing import edited
from tfdoctor.edits.splice import Declined

HEAD = "import tensorflow as tf\n\n"
REST = "tf.random.set_seed(7)\n"


@pytest.mark.parametrize(
    "call", ["tf.debugging.enable_check_numerics()", "tf.data.experimental.enable_debug_mode()"]
)
def test_the_line_is_removed(call: str) -> None:
    assert edited("debugging-off", f"{HEAD}{call}\n{REST}", call) == HEAD + REST


@pytest.mark.parametrize(
    "line",
    [
        "if debug:\n    tf.debugging.enable_check_numerics()",
        "tf.debugging.enable_check_numerics()  # until the NaN is found",
        "tf.debugging.enable_check_numerics(); x = 1",
        "other.debugging.enable_check_numerics()",
        "tf.debugging.assert_all_finite(x, 'NaN')",
        "tf.config.run_functions_eagerly(True)",
    ],
)
def test_a_line_that_somebody_decides_about_stays(line: str) -> None:
    with pytest.raises(Declined):
        edited("debugging-off", f"{HEAD}{line}\n{REST}", line.rpartition("\n")[2])
