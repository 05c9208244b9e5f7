"""The parts of a step that no specific finding names."""

from tfdoctor.facts.kit import *

SHARE = 0.10  # Share of the step from which a part needs an explanation


class Unexplained(Record):
    """The time of a step that no specific finding names, which the general rules are given.

    ``parts_ms`` maps each part of the breakdown (see Breakdown) to the ms per training step that no
    finding names, as traced; only parts of which at least ``SHARE`` of the step is unexplained. ``subjects`` are
    the subjects of the specific findings' effects (operations, layers, datasets, StepWork), so that the general
    rules do not repeat them.
    """

    parts_ms: Mapping[str, float] = field(default_factory=dict)
    subjects: frozenset[str] = frozenset()

    ABSENT: ClassVar = "the parts of a step are unknown, so it is unknown which of them findings explain"
