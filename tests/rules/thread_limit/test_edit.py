"""all-cores: TensorFlow chooses where a call of its own sets the number of threads."""

import pytest

from tests.edits.editing_at import edited_at
from tfdoctor.edits.splice import Declined

TEXT = "import tensorflow as tf\ntf.config.threading.set_intra_op_parallelism_threads({})\n"


@pytest.mark.parametrize("number", ["1", "threads", "int(os.environ['N'])"])
def test_the_number_becomes_that_of_the_cores(number: str) -> None:
    assert edited_at("all-cores", TEXT.format(number), "set_intra") == TEXT.format("0")


@pytest.mark.parametrize(
    "text",
    [
        'import os\nos.environ["TF_NUM_INTRAOP_THREADS"] = "1"  # set_intra\n',
        TEXT.format("*given"),
        TEXT.format("1").replace("tf.config", "other.config"),
        TEXT.format("1").replace(")\n", "); tf.config.threading.set_inter_op_parallelism_threads(1)\n"),
    ],
)  # fmt: skip
def test_other_lines_decline(text: str) -> None:
    with pytest.raises(Declined):
        edited_at("all-cores", text, "set_intra")
