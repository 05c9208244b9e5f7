"""Types and markers for the fields of dataclasses that `typed` reads from JSON."""

from typing import Annotated

from tfdoctor.terms.record import Record

# Marks a list that needs all its entries, such as the operations of a graph: a damaged entry damages the object
# that holds the list.
WHOLE = "whole"
LOOSE = "loose"  # Marks an integer that numpy may have made: the file may contain 32.0 or "32" in its place
# Marks a number of the program's own, of any size; JSON has none for "inf", "-inf" and "nan", which are texts.
CONSTANT = "constant"
# Marks a text that is no name to show, such as a word of a command to run: other texts are read as names, on one
# line and with an end.
EXACT = "exact"


class Bounds(Record):
    """The range of valid numbers, at most 64 bits."""

    least: float = -(2**63)
    most: float = 2**63 - 1


Exact = Annotated[str, EXACT]

Constant = Annotated[float, CONSTANT]

Count = Annotated[int, Bounds(least=0)]  # A number of things, or a time in nanoseconds since 1970
Amount = Annotated[float, Bounds(least=0.0)]  # A measured quantity that cannot be negative
Positive = Annotated[float, Bounds(least=1e-9)]  # A measured quantity that other quantities are divided by
