"""Text on colours: every label has the contrast that WCAG 2.2 asks for, 4.5 to 1."""

import pytest

from tfdoctor.report.palette import PART_COLOURS, SHARE_SCALE, ink, shade
from tfdoctor.report.run.words import PHASE_COLOURS


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(
    "colour", sorted({*PART_COLOURS.values(), *PHASE_COLOURS.values(), *(shade(at / 20) for at in range(21))})
)
def test_text_on_every_colour_can_be_read(colour: str) -> None:
    dark, light = sorted((luminance(colour), luminance(ink(colour))))
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_the_scale_has_its_own_colours_at_its_stops() -> None:
    assert [shade(at) for at, _ in SHARE_SCALE] == [colour for _, colour in SHARE_SCALE]
