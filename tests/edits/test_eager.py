"""run_eagerly is switched off only where nothing in the step may need eager steps."""

from pathlib import Path

import pytest

from tests.edits.editing import edited as edit
from tests.edits.recorded import finding, recorded, remedy
from tfdoctor.edits import edited
from tfdoctor.source_code.splice import Declined

SCRIPT = """import keras
import numpy as np
from keras import layers
from losses import focal

def clipped(x):
    return np.clip(x, 0, 1)

rate = 0.1
{layer}
model.compile(optimizer, {loss}, run_eagerly=True)
optimizer = keras.optimizers.Adam(rate)
"""

DENSE = "layers.Dense(8, activation=keras.activations.relu)"


@pytest.mark.parametrize(
    ("loss", "layer"),
    [
        ("'mse'", DENSE),
        ("loss=keras.losses.Huber(), metrics=['mae', keras.metrics.AUC()]", DENSE),
        ("'mse'", "layers.Rescaling(np.pi)"),
    ],
)
def test_a_model_from_keras_is_compiled(loss: str, layer: str) -> None:
    made = edit("run-eagerly-off", SCRIPT.format(loss=loss, layer=layer), "compile")
    assert "run_eagerly=False" in made


@pytest.mark.parametrize(
    ("loss", "layer"),
    [
        ("focal", DENSE),
        ("loss=clipped", DENSE),
        ("lambda y, p: float(y - p)", DENSE),
        ("'mse', metrics=['mae', clipped]", DENSE),
        ("'mse'", "layers.Dense(8, activation=clipped)"),
        ("'mse'", "layers.Dense(8, focal)"),
        ("'mse'", "keras.layers.Activation(lambda x: x.numpy())"),
    ],
)
def test_a_custom_function_may_need_eager_steps(loss: str, layer: str) -> None:
    with pytest.raises(Declined, match="may need eager steps"):
        edit("run-eagerly-off", SCRIPT.format(loss=loss, layer=layer), "compile")


@pytest.mark.parametrize(
    ("layers", "why"),
    [
        ([{"class": "Dense", "module": "keras.src.layers.core.dense"}], ""),
        ([{"class": "Noise", "module": "__main__"}], "Noise is not from Keras"),
        ([{"class": "Lambda", "module": "keras.src.layers.core.lambda_layer"}], "Lambda"),
        (None, "does not contain the layers"),
    ],
)
def test_a_custom_layer_may_need_eager_steps(tmp_path: Path, layers: list[dict[str, str]] | None, why: str) -> None:
    (tmp_path / "train.py").write_text("model.compile('sgd', 'mse', run_eagerly=True)\n")
    run = recorded(tmp_path, ["train.py"], layers=layers)
    results, _ = edited(run, [finding("a", remedy("run-eagerly-off"))], None)
    missing = results[0].edits[0].missing
    assert why in missing
    assert bool(why) == bool(missing)
