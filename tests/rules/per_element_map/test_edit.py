"""vectorized-map: only a function that treats a batch as it treats each element is given batches."""

import pytest

from tests.edits.editing import edited
from tfdoctor.edits.splice import Declined

TEXT = """import tensorflow as tf

N, MEAN = 3, tf.ones([3])


def parse(record):
    row = tf.io.parse_single_example(record, FEATURES)
    label = row.pop("y")
    {body}
    return {result}


ds = files.shuffle(9){chain}
{after}
"""

CHAIN, RESULT = ".map(parse, num_parallel_calls=4).batch(8)", "row, label"


def made(body: str = "pass", result: str = RESULT, chain: str = CHAIN, after: str = "") -> str:
    text = TEXT.format(body=body, result=result, chain=chain, after=after)
    return edited("vectorized-map", text, "ds = files")


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("pass", RESULT),
        ("label = tf.one_hot(label, N)", RESULT),
        ("x = tf.cast(row['x'], tf.float32) / 255.0", "x, label"),
        ("x = tf.stack([row[k] for k in sorted(row)], axis=-1)", "x, label"),
    ],
)
def test_batches_are_parsed_at_once(body: str, result: str) -> None:
    text = made(body, result)
    assert "files.shuffle(9).batch(8).map(parse, num_parallel_calls=4)\n" in text
    assert "tf.io.parse_example(record, FEATURES)" in text
    assert "single" not in text


@pytest.mark.parametrize(
    ("body", "result", "chain", "after"),
    [
        ("x = row['x'][0]", "x, label", CHAIN, ""),
        ("x = row['x'] - MEAN", "x, label", CHAIN, ""),
        ("x = row['x'] * row['z']", "x, label", CHAIN, ""),
        ("x = tf.maximum(row['x'], row['z'])", "x, label", CHAIN, ""),
        ("x = tf.stack([row['x'], row['z']])", "x, label", CHAIN, ""),
        ("x = tf.reduce_sum(row['x'])", "x, label", CHAIN, ""),
        ("x = tf.reshape(row['x'], [2, 2])", "x, label", CHAIN, ""),
        ("x = tf.io.decode_raw(row['x'], tf.uint8)", "x, label", CHAIN, ""),
        ("x = tf.random.uniform([])", "x, label", CHAIN, ""),
        ("if MEAN:\n        pass", RESULT, CHAIN, ""),
        ("f = tf.io.VarLenFeature(tf.int64)", RESULT, CHAIN, ""),
        ("pass", RESULT, ".map(parse, num_parallel_calls=4).repeat().batch(8)", ""),
        ("pass", RESULT, ".map(parse, num_parallel_calls=4)", ""),
        ("pass", RESULT, CHAIN, "other = test.map(parse)"),
    ],
)
def test_what_a_batch_would_change_declines(body: str, result: str, chain: str, after: str) -> None:
    with pytest.raises(Declined):
        made(body, result, chain, after)


LINES = """import tensorflow as tf

N = 3
DEFAULTS = [[0.0]] * N


def parse(line):
    fields = tf.io.decode_csv(line, DEFAULTS + [0])
    {body}
    return x, fields[-1]


ds = tf.data.TextLineDataset(path).shuffle(9)
ds = ds.map(parse, num_parallel_calls=4)
{between}ds = ds.batch(8).prefetch(2)
"""


def of_lines(body: str = "x = tf.stack(fields[:-1], axis=-1)", between: str = "") -> str:
    text = LINES.format(body=body, between=between)
    return edited("vectorized-map", text, "ds = ds.map(parse")


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ("x = tf.stack(fields[:-1], axis=-1)", "x = tf.stack(fields[:-1], axis=-1)"),
        ("x = tf.stack(fields[:-1])", "x = tf.stack(fields[:-1], axis=-1)"),
        ("x = tf.math.log(fields[0] + 1.0)", "x = tf.math.log(fields[0] + 1.0)"),
    ],
)
def test_lines_of_columns_are_decoded_in_batches(body: str, written: str) -> None:
    text = of_lines(body)
    assert "ds = ds.batch(8)\nds = ds.map(parse, num_parallel_calls=4).prefetch(2)\n" in text
    assert f"    {written}\n" in text


@pytest.mark.parametrize(
    ("body", "between"),
    [
        ("x = fields[0] * fields[1]", ""),
        ("x = tf.stack(fields[:-1], axis=0)", ""),
        ("x = tf.stack([fields[0], fields[1]])", ""),
        ("x = tf.stack(fields[:-1])[0]", ""),
        ("x = tf.strings.split(line, ',')", ""),
        ("x = tf.stack(fields[:-1])", "ds = ds.cache()\n"),
        ("x = tf.stack(fields[:-1])", "print(ds)\n"),
    ],
)
def test_lines_that_a_batch_would_decode_in_another_way(body: str, between: str) -> None:
    with pytest.raises(Declined):
        of_lines(body, between)
