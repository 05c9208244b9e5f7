"""Several steps in one call: only where the file shows that no callback needs single batches."""

import pytest

from tests.edits.editing import edited
from tfdoctor.source_code.splice import Declined

SCRIPT = """import keras
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

BY_EPOCH = [
    "",
    ", callbacks=None",
    ", callbacks=[]",
    ", callbacks=[stop, CSVLogger('log.csv', append=True), Mine()]",
    ", y, 32, 4, 2, [keras.callbacks.ReduceLROnPlateau(patience=3)]",
    ", callbacks=[keras.callbacks.LambdaCallback(on_epoch_begin=tick)]",
    ", callbacks=[keras.callbacks.ModelCheckpoint('x', monitor='loss')]",
    ", callbacks=[keras.callbacks.TensorBoard('logs')]",
]

BY_BATCH = [
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
    ", callbacks=[keras.callbacks.TensorBoard('logs', update_freq=10)]",
    ", callbacks=[*several]",
    ", validation_steps=7",
]


@pytest.mark.parametrize("callbacks", BY_EPOCH)
def test_callbacks_that_need_epochs_allow_several_steps_per_call(callbacks: str) -> None:
    made = edited("steps-per-execution", SCRIPT.format(callbacks=callbacks), "compile")
    assert 'model.compile("sgd", "mse", steps_per_execution=16)' in made


def test_a_list_with_a_name_is_followed() -> None:
    made = edited("steps-per-execution", SCRIPT.format(callbacks=", callbacks=several"), "compile")
    assert "steps_per_execution=16" in made


@pytest.mark.parametrize("callbacks", BY_BATCH)
def test_callbacks_that_may_need_batches_do_not(callbacks: str) -> None:
    with pytest.raises(Declined):
        edited("steps-per-execution", SCRIPT.format(callbacks=callbacks), "compile")


def test_a_regular_expression_is_no_model() -> None:
    text = 'model.fit(x)\npattern = rx.compile("sgd")\n'
    with pytest.raises(Declined, match="no call to compile"):
        edited("steps-per-execution", text)
