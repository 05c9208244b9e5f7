"""Colours of the parts of a step and of the phases of a run: for light and dark, and for colour-blind readers."""

from itertools import pairwise
from types import MappingProxyType

from tfdoctor.terms.kinds import Phase

# After Okabe and Ito, darkened until each reaches 3:1 against the light and the dark page.
PART_COLOURS = MappingProxyType(
    {
        "input": "#d55e00",
        "transfer": "#b8609a",
        "host": "#b07d0e",
        "device": "#0f76b5",
        "collective": "#1f958c",
        "between": "#7f8791",
        "unknown": "#69717c",
    }
)

# As those of the parts: training steps as computing, preparing data as waiting for input.
PHASE_COLOURS = MappingProxyType(
    {
        Phase.START: "#7f8791",
        Phase.IMPORTS: "#5b7a99",
        Phase.PREPARING: "#d55e00",
        Phase.CHILDREN: "#8c8440",
        Phase.OWN: "#4f86a8",
        Phase.BUILDING: "#b8609a",
        Phase.TRACING: "#8a63c9",
        Phase.STEPS: "#0f76b5",
        Phase.BOUNDARIES: "#b07d0e",
        Phase.EVALUATION: "#1f958c",
        Phase.PREDICTION: "#5f8f1d",
        Phase.SAVING: "#a4663f",
        Phase.PROFILER: "#cc4455",
        Phase.END: "#7b8a7b",
        Phase.UNNAMED: "#69717c",
    }
)

CRITICAL_STAGE = PART_COLOURS["input"]
OTHER_STAGE = PART_COLOURS["between"]
LIGHT_PAGE = "#ffffff"
DARK_PAGE = "#14171c"

# One hue from light to dark: reads the same for every kind of colour vision.
SHARE_SCALE = ((0.0, "#7fb2d6"), (0.35, "#3d8fc4"), (1.0, "#0b4a75"))
EVEN = 0.179  # Luminance at which black and white have the same contrast, 4.58


def ink(colour: str) -> str:
    """Return black or white, whichever has the higher contrast on a colour (WCAG 2.2, relative luminance)."""
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = (((channel + 0.055) / 1.055) ** 2.4 for channel in channels)
    weighted = zip((0.2126, 0.7152, 0.0722), linear, strict=True)
    return "#000000" if sum(weight * part for weight, part in weighted) > EVEN else "#ffffff"


def shade(share: float) -> str:
    """Return the colour of SHARE_SCALE at a share, 0 to 1."""
    for (low, first), (high, last) in pairwise(SHARE_SCALE):
        if share <= high:
            part = (share - low) / (high - low)
            ends = ((int(first[at : at + 2], 16), int(last[at : at + 2], 16)) for at in (1, 3, 5))
            return "#" + "".join(f"{round(start + part * (end - start)):02x}" for start, end in ends)
    return SHARE_SCALE[-1][1]
