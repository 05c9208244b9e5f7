"""Colours of the parts of a step, for light and dark and for colour-blind readers, and of shares."""

from itertools import pairwise

# After Okabe and Ito, darkened until each reaches 3:1 against the light and the dark page.
PART_COLOURS = {
    "input": "#d55e00", "transfer": "#b8609a", "host": "#b07d0e", "device": "#0f76b5", "collective": "#1f958c",
    "between": "#7f8791", "unknown": "#69717c",
}  # fmt: skip
CRITICAL_STAGE = PART_COLOURS["input"]
OTHER_STAGE = PART_COLOURS["between"]
LIGHT_PAGE = "#ffffff"
DARK_PAGE = "#14171c"

# One hue from light to dark: reads the same for every kind of colour vision.
SHARE_SCALE = ((0.0, "#7fb2d6"), (0.35, "#3d8fc4"), (1.0, "#0b4a75"))
EVEN = 0.179  # Luminance at which black and white have the same contrast, 4.58


def _channels(colour: str) -> list[int]:
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]


def ink(colour: str) -> str:
    """Return black or white, whichever has the higher contrast on a colour (WCAG 2.2, relative luminance)."""
    linear = (((channel / 255 + 0.055) / 1.055) ** 2.4 for channel in _channels(colour))
    weighted = zip((0.2126, 0.7152, 0.0722), linear, strict=True)
    return "#000000" if sum(weight * part for weight, part in weighted) > EVEN else "#ffffff"


def shade(share: float) -> str:
    """Return the colour of SHARE_SCALE at a share, 0 to 1."""
    for (low, first), (high, last) in pairwise(SHARE_SCALE):
        if share <= high:
            part = (share - low) / (high - low)
            ends = zip(_channels(first), _channels(last), strict=True)
            return "#" + "".join(f"{round(start + part * (end - start)):02x}" for start, end in ends)
    return SHARE_SCALE[-1][1]
