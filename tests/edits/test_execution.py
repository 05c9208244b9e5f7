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
model.fit(x{})
"""


TOLD = Edits()
TOLD.make(
    "steps-per-execution",
    "compile",
    CALLED.format,
    # need epochs
    *("", ", callbacks=None", ", callbacks=[]", ", callbacks=several"),
    ", callbacks=[stop, CSVLogger('log.csv', append=True), Mine()]",
    ", y, 32, 4, 2, [keras.callbacks.ReduceLROnPlateau(patience=3)]",
    ", callbacks=[keras.callbacks.LambdaCallback(on_epoch_begin=tick)]",
    ", callbacks=[keras.callbacks.ModelCheckpoint('x', monitor='loss')]",
    ", callbacks=[keras.callbacks.TensorBoard('logs')]",
    # may need batches
    ", callbacks=[EarlyStopping()]",  # not that of Keras
    *(", callbacks=[EveryBatch()]", ", callbacks=[seen]", ", callbacks=growing", ", callbacks=made()"),
    *(", y, 32, 4, 2, [EveryBatch()]", ", **settings", ", callbacks=[*several]", ", validation_steps=7"),
    ", callbacks=[keras.callbacks.TerminateOnNaN()]",
    ", callbacks=[keras.callbacks.LambdaCallback(on_train_batch_start=tick)]",
    *(f", callbacks=[stop])\nMine.on_{batch} = (tick" for batch in ("batch_end", "batch_begin", "train_batch_end")),
    ", callbacks=[keras.callbacks.LambdaCallback(tick, None, tick)]",
    ", callbacks=[keras.callbacks.ModelCheckpoint('x', save_freq=50)]",
    ", callbacks=[keras.callbacks.ModelCheckpoint(**settings)]",
    ", callbacks=[keras.callbacks.TensorBoard('logs', update_freq=10)]",
)
TOLD.make("steps-per-execution", "", 'model.fit(x)\npattern = {}.compile("sgd")\n'.format, "rx")  # of no model

EAGER = """import keras
import numpy as np
from keras import layers
from losses import focal

def clipped(x):
    return np.clip(x, 0, 1)

rate = 0.1
{1}
model.compile(optimizer, {0}, run_eagerly=True)
optimizer = keras.optimizers.Adam(rate)
"""

DENSE = "layers.Dense(8, activation=keras.activations.relu)"

TOLD.make(
    "run-eagerly-off",
    "compile",
    EAGER.format,
    *((loss, DENSE) for loss in ("'mse'", "focal", "loss=clipped", "lambda y, p: float(y - p)")),
    ("loss=keras.losses.Huber(), metrics=['mae', keras.metrics.AUC()]", DENSE),
    ("'mse', metrics=['mae', clipped]", DENSE),
    *(
        ("'mse'", f"layers.{layer}")
        for layer in ("Rescaling(np.pi)", "Dense(8, activation=clipped)", "Dense(8, focal)")
    ),
    ("'mse'", "keras.layers.Activation(lambda x: x.numpy())"),
)
test_steps_per_call_and_eager_steps = TOLD.test("execution")


def test_a_custom_layer_may_need_eager_steps(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    (tmp_path / "train.py").write_text("model.compile('sgd', 'mse', run_eagerly=True)\n")
    layers = [{"class": "Dense", "module": "keras.src.layers.core.dense"}]
    layers += [
        {"class": "Noise", "module": "__main__"},
        {"class": "Lambda", "module": "keras.src.layers.core.lambda_layer"},
    ]
    told, asked = Told(), finding("a", remedy("run-eagerly-off"))
    for layer in layers:
        told[said] = {layer["class"]: (recorded(tmp_path, layers=[layer]), asked)}
    told[said] = {"unknown layers": (recorded(tmp_path, layers=None), asked)}
    golden("execution.layers.txt", "\n".join(told.lines()))
