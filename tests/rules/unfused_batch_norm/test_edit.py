"""The edit that adds the class of fused batch normalization and uses it."""

import ast

import pytest

from tests.edits.editing import edited
from tfdoctor.edits.splice import Declined
from tfdoctor.rules.unfused_batch_norm import CODE

NAME = "FusedBatchNormalization"


def made(text: str) -> str:
    result = edited("fused-batch-norm", text, "BatchNormalization(")
    ast.parse(result)
    return result


@pytest.mark.parametrize(
    ("imports", "written"),
    [
        ("import keras\nimport tensorflow as tf", "keras.layers.BatchNormalization"),
        ("import tensorflow as tf", "tf.keras.layers.BatchNormalization"),
        ("import tensorflow as tf\nfrom keras import layers as L", "L.BatchNormalization"),
        ("import tensorflow as tf\nfrom keras.layers import BatchNormalization", "BatchNormalization"),
    ],
)
def test_the_class_stands_below_the_imports_and_makes_the_layers(imports: str, written: str) -> None:
    text = f"{imports}\n\nx = {written}(momentum=0.9)(x)\ny = {written}()(x)\n"
    result = made(text)
    assert result.startswith(f"{imports}\n\n\nclass {NAME}({written}):\n")
    assert result.endswith(f"\n\nx = {NAME}(momentum=0.9)(x)\ny = {NAME}()(x)\n")
    assert result.count(NAME) == 3


def test_tensorflow_is_imported_where_the_file_does_not() -> None:
    result = made("import keras\n\nx = keras.layers.BatchNormalization()(x)\n")
    assert result.startswith("import keras\nimport tensorflow as tf\n\n\nclass ")


def test_tensorflow_keeps_its_name() -> None:
    result = made("import keras\nimport tensorflow\n\nx = keras.layers.BatchNormalization()(x)\n")
    assert "tensorflow.compat.v1.nn.fused_batch_norm" in result
    assert "(tf." not in result


def test_line_ends_stay() -> None:
    result = made("import tensorflow as tf\r\nx = tf.keras.layers.BatchNormalization()(x)\r\n")
    assert "\n" not in result.replace("\r\n", "")


@pytest.mark.parametrize(
    "text",
    [
        "import tf_keras\nx = tf_keras.layers.BatchNormalization()(x)",
        "from mine import BatchNormalization\nx = BatchNormalization()(x)",
        "import keras\nNORM = keras.layers.BatchNormalization\nx = keras.layers.BatchNormalization()(x)",
        "import keras\nclass N(keras.layers.BatchNormalization): ...\nx = keras.layers.BatchNormalization()(x)",
        f"import keras\nclass {NAME}: ...\nx = keras.layers.BatchNormalization()(x)",
        "import keras\ntf = 3\nx = keras.layers.BatchNormalization()(x)",
        "import keras\nx = keras.layers.BatchNormalization()(x)\nmodel.save('m.keras')",
    ],
)
def test_where_it_may_break_something_it_is_declined(text: str) -> None:
    with pytest.raises(Declined):
        made(text)


def test_the_example_is_the_class() -> None:
    assert CODE["drop-in"].startswith(f"class {NAME}(keras.layers.BatchNormalization):")
