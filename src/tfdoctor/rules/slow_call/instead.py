"""What to do instead of each costly call."""

from tfdoctor.facts.step_time.line_work import SlowCall
from tfdoctor.terms.verdict import Remedy

ON_BATCH = """\
values = model.predict_on_batch(x)  # NumPy; for a tensor: model(x, training=False) in a tf.function"""

TEST_ON_BATCH = """\
results = model.test_on_batch(x, y)"""

STACKED = """\
results = function(np.stack(examples))  # one call; results[i] belongs to examples[i]"""

ASSIGN = """\
@tf.function
def update_targets():
    for slow, variable in zip(target.variables, model.variables):
        slow.assign(tau * variable + (1 - tau) * slow)"""

CALL = """\
@tf.function
def act(state):
    return model(state, training=False)"""

RARELY = """\
if step % 1000 == 0:
    model.save_weights(path)"""

ONE_FIT = """\
loss = model.train_on_batch(x, y)  # one batch: no dataset and no callbacks to build
# or one fit over all chunks: model.fit(tf.data.Dataset.from_generator(chunks, output_signature=signature))"""

INSTEAD: dict[SlowCall | None, Remedy] = {
    SlowCall.FIT: Remedy("Call train_on_batch, or fit once over all batches", ONE_FIT),
    SlowCall.PREDICT: Remedy(
        "Call predict_on_batch, or the model in a tf.function", ON_BATCH, edit_id="calls-per-batch"
    ),
    SlowCall.EVALUATE: Remedy("Call test_on_batch, or evaluate once per epoch", TEST_ON_BATCH),
    SlowCall.WEIGHTS: Remedy("Update the variables in place, in a tf.function", ASSIGN, edit_id="assign-weights"),
    SlowCall.CLONE: Remedy("Clone the model once, before the loop"),
    SlowCall.SAVE: Remedy("Save every 1,000 steps or once per epoch", RARELY),
    SlowCall.MODEL: Remedy("Call the model in a tf.function", CALL),
    SlowCall.SINGLE: Remedy(
        "Stack the examples and call the function once, if no call needs the result of another", STACKED
    ),
    SlowCall.CLEAR: Remedy("Clear the session once, before the model is built"),
}
"""What to do instead of each call; the sources are linked on the rule's page."""
