"""layer-width: the report shows the line with the advised width."""

import pytest

from tests.edits.editing_at import edited_at
from tfdoctor.edits.splice import Declined

TEXT = "import keras\nx = keras.layers.Dense(130)(x)\n"


def test_the_layer_has_the_advised_width() -> None:
    new = edited_at("layer-width", TEXT, "Dense", "130  ->  128    # fewer tiles")
    assert new == TEXT.replace("130", "128")


@pytest.mark.parametrize("example", ["", "131  ->  128"])
def test_another_number_declines(example: str) -> None:
    with pytest.raises(Declined):
        edited_at("layer-width", TEXT, "Dense", example)
