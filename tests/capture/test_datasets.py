"""What the agent writes of a pipeline: options, files, and what the functions do."""

from typing import Any

import pytest

from tests.capture.running import profiled

pytestmark = pytest.mark.tensorflow

SCRIPT = """
import pathlib
import tensorflow as tf

for number in range(20):
    pathlib.Path(f"{number}.raw").write_bytes(bytes(64 + number))

def load(path):
    raw = tf.cast(tf.io.decode_raw(tf.io.read_file(path), tf.uint8)[:64], tf.float32)
    return tf.cond(raw[0] > 9, lambda: raw, lambda: raw + tf.random.uniform(()))

options = tf.data.Options()
options.threading.private_threadpool_size = 1
options.autotune.enabled = False
paths = [str(path.resolve()) for path in sorted(pathlib.Path().glob("*.raw"))]
pairs = tf.data.Dataset.from_tensors([paths[:2], paths[2:4]])
far = tf.data.TFRecordDataset(["gs://bucket/a.tfrecord", "gs://bucket/b.tfrecord"])
data = tf.data.Dataset.from_tensor_slices(paths).shuffle(20, reshuffle_each_iteration=False)
data = data.map(load).batch(4).with_options(options)
weights = tf.Variable(tf.zeros((64, 1)))

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.matmul(tf.reshape(x, (4, 64)), weights))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))

for _ in range(4):
    for x in data:
        step(x)
"""


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("datasets")
    script = folder / "train.py"
    script.write_text(SCRIPT)
    run = profiled(script, folder / "out", warmup=2, steps=3)
    assert run.code == 0
    assert "datasets" not in run.missing()
    return {dataset["class"]: dataset for dataset in run.program["datasets"]}


def test_options_that_were_set_are_known(datasets: dict[str, Any]) -> None:
    set_here = datasets["_OptionsDataset"]["options"]
    assert set_here["threading.private_threadpool_size"] == 1
    assert set_here["autotune.enabled"] is False
    assert "autotune.enabled" not in datasets["_BatchDataset"]["options"]


def test_the_files_are_counted_and_weighed_but_not_named(datasets: dict[str, Any]) -> None:
    files = datasets["_TensorSliceDataset"]["files"]
    assert (files["count"], files["scheme"]) == (20, "")
    assert 64 <= files["bytes"] < 84
    assert datasets["_ShuffleDataset"]["files"] is None


def test_several_files_for_each_element_all_count(datasets: dict[str, Any]) -> None:
    assert datasets["_TensorDataset"]["files"]["count"] == 4


def test_files_elsewhere_are_left_alone(datasets: dict[str, Any]) -> None:
    assert datasets["TFRecordDatasetV2"]["files"] == {"count": 2, "scheme": "gs", "bytes": None}


def test_what_the_branches_of_a_function_do_counts(datasets: dict[str, Any]) -> None:
    function = datasets["_MapDataset"]["function"]
    assert {"ReadFile", "DecodeRaw"} < set(function["types"])
    assert [name for name in function["stateful"] if "Random" in name] == ["RandomUniform"]


def test_whether_a_shuffle_is_the_same_each_time(datasets: dict[str, Any]) -> None:
    assert datasets["_ShuffleDataset"]["parameters"]["reshuffle_each_iteration"] is False


def test_each_stage_names_the_function_that_its_line_calls(datasets: dict[str, Any]) -> None:
    assert datasets["_MapDataset"]["made_by"] == "map"
    assert datasets["_TensorSliceDataset"]["made_by"] == "from_tensor_slices"
