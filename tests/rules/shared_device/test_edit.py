"""one-replica: the default strategy takes the place of the only mirrored one."""

import pytest

from tests.edits.editing_at import edited_at
from tfdoctor.edits.splice import Declined

TEXT = 'import tensorflow as tf\nstrategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])\n'


def test_one_replica_trains() -> None:
    new = edited_at("one-replica", TEXT, "import")
    assert new == "import tensorflow as tf\nstrategy = tf.distribute.get_strategy()\n"


@pytest.mark.parametrize(
    "text",
    [
        TEXT + "other = tf.distribute.MirroredStrategy()\n",
        "import tensorflow as tf\nwith tf.distribute.MirroredStrategy().scope(): pass\n",
        TEXT.replace("tf.distribute", "mine.distribute"),
        "import tensorflow as tf\nstrategy = tf.distribute.MultiWorkerMirroredStrategy()\n",
    ],
)
def test_other_strategies_decline(text: str) -> None:
    with pytest.raises(Declined):
        edited_at("one-replica", text, "import")
