"""The advice of padding-waste runs as it is written, for whatever makes the batches, and trains."""

import json
import subprocess
import sys

import pytest

from tests.capture.running import environment
from tfdoctor.facts.input.training_inputs import PaddedInput, SequencePadding
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules.input import padding_waste
from tfdoctor.rules.input.padding_waste import LengthWork
from tfdoctor.rules.input.padding_waste.batch_source import BatchMaker, BatchSource
from tfdoctor.terms.verdict import Finding

pytestmark = pytest.mark.tensorflow

BEFORE = """
import random
import keras
import numpy as np
import tensorflow as tf

rng, batch_size = np.random.default_rng(1), 16
sequences = [rng.integers(1, 50, size).astype("int32") for size in rng.integers(5, 60, 500)]
lengths, labels = np.array([len(one) for one in sequences]), rng.integers(0, 2, 500)
model = keras.Sequential([
    keras.Input((None,), dtype="int32"),
    keras.layers.Embedding(50, 8),
    keras.layers.GlobalAveragePooling1D(),
    keras.layers.Dense(2),
])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
seen = []

def dataset_of_examples():
    signature = tf.TensorSpec((None,), "int32"), tf.TensorSpec((), "int64")
    examples = lambda: zip(sequences, labels)
    return tf.data.Dataset.from_generator(examples, output_signature=signature)

def train_step(tokens, y):
    seen.append(tokens.shape[1])
    model.train_on_batch(tokens, y)

class Texts(keras.utils.PyDataset):
    def __len__(self):
        return len(found_batches)

    def __getitem__(self, at):
        batch = found_batches[at]
        tokens = padded([sequences[one] for one in batch])
        if at == 0 and not by_length:
            tokens = np.pad(tokens, [(0, 0), (0, 8)])
        seen.append(tokens.shape[1])
        return tokens, labels[batch]
"""

DATASET = """
seen += [int(tokens.shape[1]) for tokens, _ in dataset]
model.fit(dataset, verbose=0)
"""

AFTER = {
    BatchMaker.DATASET: DATASET,
    BatchMaker.ARRAYS: DATASET,
    BatchMaker.GIVEN: """
if by_length:
    found_batches = batches(lengths, batch_size)
else:
    order = rng.permutation(500)
    found_batches = [order[at : at + batch_size] for at in range(0, 500, batch_size)]
model.fit(Texts(), verbose=0)
""",
    BatchMaker.LOOP: """
if not by_length:
    for at in range(0, 500, batch_size):
        train_step(padded(sequences[at : at + batch_size]), labels[at : at + batch_size])
""",
}


def advised(maker: BatchMaker) -> tuple[str, str]:
    """Return the code for sequences of 5 to 59 positions that are padded to 120."""
    padding = SequencePadding((PaddedInput(120, (tuple(range(5, 60)),), batches=True),))
    found = padding_waste.check(padding, BatchSource(maker), LengthWork(()), Breakdown.of(device=30.0), None, None)
    assert isinstance(found, Finding)
    own, by_length = found.remedies
    return own.code, by_length.code


def program(maker: BatchMaker, *, by_length: bool) -> str:
    """Return a program that trains by the advice, and notes in `seen` how long its batches are."""
    begin = "dataset = dataset_of_examples()\n" if maker is BatchMaker.DATASET else ""
    parts = BEFORE, f"by_length = {by_length}", begin + advised(maker)[by_length], AFTER[maker]
    return "\n".join(parts)


CASES = [(maker, by_length) for maker in BatchMaker for by_length in (False, True)]

RUN = """
import json, sys
for text in json.load(sys.stdin):
    names = {}
    exec(text, names)
    print(json.dumps(names["seen"]), flush=True)
"""


@pytest.fixture(scope="module")
def trained() -> dict[tuple[BatchMaker, bool], list[int]]:
    """Run the program of each case, all in one process; return the lengths of their batches."""
    programs = [program(maker, by_length=by_length) for maker, by_length in CASES]
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=json.dumps(programs),
        env=environment(), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    return dict(zip(CASES, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize(("maker", "by_length"), CASES)
def test_the_advice_runs(
    maker: BatchMaker, trained: dict[tuple[BatchMaker, bool], list[int]], *, by_length: bool
) -> None:
    shapes = trained[maker, by_length]
    mean = sum(shapes) / len(shapes)
    assert max(shapes) <= 64 + 8
    assert mean < 45 if by_length else mean > 50
    if maker in {BatchMaker.GIVEN, BatchMaker.LOOP}:
        assert len(set(shapes)) <= 4 + (not by_length)  # few shapes are traced
