"""How steps run is changed only where nothing needs each batch, or eager steps."""

from tests.edits.kit import *

CALLED = """import keras
from cb import EveryBatch, EarlyStopping
from keras.callbacks import CSVLogger

class Mine(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        pass

stop = keras.callbacks.EarlyStopping()
seen = EveryBatch()
several = [stop]
growing = []
growing.append(seen)
model.compile("sgd", "mse")
model.fit(x{callbacks})
"""


@pytest.mark.parametrize(
    "callbacks",
    [
        "",
        ", callbacks=None",
        ", callbacks=[]",
        ", callbacks=several",
        ", callbacks=[stop, CSVLogger('log.csv', append=True), Mine()]",
        ", y, 32, 4, 2, [keras.callbacks.ReduceLROnPlateau(patience=3)]",
        ", callbacks=[keras.callbacks.LambdaCallback(on_epoch_begin=tick)]",
        ", callbacks=[keras.callbacks.ModelCheckpoint('x', monitor='loss')]",
        ", callbacks=[keras.callbacks.TensorBoard('logs')]",
    ],
)
def test_callbacks_that_need_epochs_allow_several_steps_per_call(callbacks: str) -> None:
    text = edited("steps-per-execution", CALLED.format(callbacks=callbacks), "compile")
    assert 'model.compile("sgd", "mse", steps_per_execution=16)' in text


@pytest.mark.parametrize(
    "callbacks",
    [
        ", callbacks=[EveryBatch()]",
        ", callbacks=[EarlyStopping()]",  # not that of Keras
        ", callbacks=[seen]",
        ", callbacks=growing",
        ", callbacks=made()",
        ", y, 32, 4, 2, [EveryBatch()]",
        ", **settings",
        ", callbacks=[keras.callbacks.TerminateOnNaN()]",
        ", callbacks=[keras.callbacks.LambdaCallback(on_train_batch_start=tick)]",
        ", callbacks=[keras.callbacks.LambdaCallback(tick, None, tick)]",
        ", callbacks=[keras.callbacks.ModelCheckpoint('x', save_freq=50)]",
        ", callbacks=[keras.callbacks.ModelCheckpoint(**settings)]",
        ", callbacks=[keras.callbacks.TensorBoard('logs', update_freq=10)]",
        ", callbacks=[*several]",
        ", validation_steps=7",
    ],
)
def test_callbacks_that_may_need_batches_do_not(callbacks: str) -> None:
    assert declined("steps-per-execution", CALLED.format(callbacks=callbacks), "compile") is None


def test_a_regular_expression_is_no_model() -> None:
    with pytest.raises(Declined, match="no call to compile"):
        edited("steps-per-execution", 'model.fit(x)\npattern = rx.compile("sgd")\n')


EAGER = """import keras
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
    ("loss", "layer", "eager"),
    [
        ("'mse'", DENSE, False),
        ("loss=keras.losses.Huber(), metrics=['mae', keras.metrics.AUC()]", DENSE, False),
        ("'mse'", "layers.Rescaling(np.pi)", False),
        ("focal", DENSE, True),
        ("loss=clipped", DENSE, True),
        ("lambda y, p: float(y - p)", DENSE, True),
        ("'mse', metrics=['mae', clipped]", DENSE, True),
        ("'mse'", "layers.Dense(8, activation=clipped)", True),
        ("'mse'", "layers.Dense(8, focal)", True),
        ("'mse'", "keras.layers.Activation(lambda x: x.numpy())", True),
    ],
)
def test_a_custom_function_may_need_eager_steps(loss: str, layer: str, *, eager: bool) -> None:
    text = EAGER.format(loss=loss, layer=layer)
    if eager:
        with pytest.raises(Declined, match="may need eager steps"):
            edited("run-eagerly-off", text, "compile")
    else:
        assert "run_eagerly=False" in edited("run-eagerly-off", text, "compile")


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
    results, _ = made(recorded(tmp_path, layers=layers), finding("a", remedy("run-eagerly-off")))
    (reason,) = missing(results)
    assert why in reason
    assert bool(why) == bool(reason)
