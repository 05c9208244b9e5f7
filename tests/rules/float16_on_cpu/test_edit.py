"""precision-policy: the name of the policy changes where float16 is named nowhere else."""

import pytest

from tests.edits.editing_at import edited_at
from tfdoctor.edits.splice import Declined

TEXT = "import keras\nkeras.mixed_precision.set_global_policy({})\nmodel.fit(x, y)\n"
TO = 'keras.mixed_precision.set_global_policy("float32")'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"mixed_float16"', '"float32"'),
        ("'mixed_float16'", "'float32'"),
        ('keras.mixed_precision.Policy("mixed_float16")', 'keras.mixed_precision.Policy("float32")'),
        ('"mixed_float16" if fast else "float32"', '"float32" if fast else "float32"'),
    ],
)  # fmt: skip
def test_the_name_of_the_policy_changes(before: str, after: str) -> None:
    assert edited_at("precision-policy", TEXT.format(before), "fit", TO) == TEXT.format(after)


def test_a_constant_changes() -> None:
    text = f'POLICY = "mixed_float16"\n{TEXT.format("POLICY")}'
    new = edited_at("precision-policy", text, "fit", TO.replace("float32", "mixed_bfloat16"))
    assert new == text.replace("mixed_float16", "mixed_bfloat16")


@pytest.mark.parametrize(
    "text",
    [
        TEXT.format("policy"),
        TEXT.format('"mixed_float16"') + "x = tf.cast(x, tf.float16)\n",
        TEXT.format('"mixed_float16"') + 'x = x.astype("float16")\n',
        TEXT.format('"mixed_float16"') + 'layer = Dense(3, dtype="mixed_float16")\n',
        f'POLICY = "mixed_float16"\n{TEXT.format("POLICY")}print(POLICY)\n',
        'layer = Dense(3, dtype="mixed_float16")\nmodel.fit(x, y)\n',
        'kind = {"policy": "mixed_float16"}\nmodel.fit(x, y)\n',
    ],
)
def test_other_uses_of_the_type_decline(text: str) -> None:
    with pytest.raises(Declined):
        edited_at("precision-policy", text, "fit", TO)


def test_the_example_names_the_type() -> None:
    with pytest.raises(Declined, match="does not name the type"):
        edited_at("precision-policy", TEXT.format('"mixed_float16"'), "fit", "")
