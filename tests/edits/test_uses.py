"""drop_remainder: only for a dataset that the file uses for training alone."""

import pytest

from tests.edits.editing import edited
from tfdoctor.edits.splice import Declined

TRAINED = [
    "d = d.batch(8)\nmodel.fit(d, epochs=3)",
    "d = d.batch(8)\nd = d.prefetch(2)\nmodel.fit(x=d, validation_data=other)",
    "model.fit(d.map(f).batch(8).prefetch(2))",
    "for x in d.batch(8).prefetch(2):\n    step(x)",
    "d = d.batch(8)\nfor epoch in range(3):\n    for x in d:\n        step(x)",
    "def made():\n    d = source()\n    d = d.batch(8)\n    return d.prefetch(2)\n\nmodel.fit(made())",
    "d = d.batch(8)\ndef train():\n    model.fit(d)",
]

DOUBTFUL = [
    "d = d.batch(8)",  # another file uses it
    "d = d.batch(8)\nmodel.fit(d)\nmodel.evaluate(d)",
    "d = d.batch(8)\nmodel.fit(d, validation_data=d)",
    "d = d.batch(8)\nmodel.fit(y, validation_data=d)",
    "d = d.batch(8)\nmodel.evaluate(d)",
    "def test():\n    model.evaluate(d)\n\nd = d.batch(8)\nmodel.fit(d)",
    "d = d.batch(8)\nmodel.fit(d.take(9))\nmodel.evaluate(d.skip(9))",
    "def made(d):\n    return d.batch(8)\n\nmodel.fit(made(a), validation_data=made(b))",
    "def made(d):\n    return d.batch(8)\n\nfor one in several:\n    data = made(one)\n    model.fit(data)",
    "def made(d):\n    return d.batch(8)\n\ntrain, test = [made(one) for one in several]\nmodel.fit(train)",
    "def made():\n    return d.batch(8), d",
    "d = d.batch(8)\nrun(d)",
    "self.d = d.batch(8)\nmodel.fit(self.d)",
    "d = d.batch(8)\nprint(len(d))\nmodel.fit(d)",
    "for x in test(d.batch(8)):\n    step(x)",
]


@pytest.mark.parametrize("text", TRAINED)
def test_a_dataset_for_training_may_lose_its_last_batch(text: str) -> None:
    assert edited("drop-remainder", text, ".batch(8") == text.replace(".batch(8", ".batch(8, drop_remainder=True")


@pytest.mark.parametrize("text", DOUBTFUL)
def test_a_dataset_for_evaluation_keeps_its_last_batch(text: str) -> None:
    with pytest.raises(Declined, match="may also be used for evaluation"):
        edited("drop-remainder", text, ".batch(8")
