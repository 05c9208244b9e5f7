"""The parts of a step that no specific finding names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from tfdoctor.facts.chart import Unavailable

SHARE = 0.10
"""Share of the step from which a part needs an explanation."""


@dataclass(frozen=True, slots=True)
class Unexplained:
    """The time of a step that no specific finding names, given to the general rules by the engine.

    ``parts_ms`` maps each part of the breakdown (see Breakdown) to the ms per training step that no
    finding names, as traced; only parts of which at least ``SHARE`` of the step is unexplained. ``subjects`` are
    the subjects of the specific findings' effects (operations, layers, datasets, StepWork), so that the general
    rules do not repeat them.
    """

    parts_ms: Mapping[str, float] = field(default_factory=dict)
    subjects: frozenset[str] = frozenset()

    @classmethod
    def measure(cls) -> Self:
        """Refuse to measure it: it follows from the findings, not from the recording.

        Raises:
            Unavailable: always; the engine gives it to the chart after the specific rules.
        """
        raise Unavailable(
            "the parts of a step are unknown, so it is unknown which of them findings explain"
        )
