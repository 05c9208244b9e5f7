"""The colours of the parts of a step: for light and dark, and for colour-blind readers."""

from types import MappingProxyType

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
"""After Okabe and Ito, darkened until each reaches 3:1 against the light and the dark page."""

CRITICAL_STAGE = PART_COLOURS["input"]
OTHER_STAGE = PART_COLOURS["between"]
LIGHT_PAGE = "#ffffff"
DARK_PAGE = "#14171c"

SHARE_SCALE = ((0.0, "#7fb2d6"), (0.35, "#3d8fc4"), (1.0, "#0b4a75"))
"""One hue from light to dark: reads the same for every kind of colour vision."""
