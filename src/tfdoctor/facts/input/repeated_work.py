"""The work of the input that is the same in every pass, and that a cache would spare."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.input.cacheable import Cacheable
from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.terms.verdict import Effect


@dataclass(frozen=True, slots=True)
class RepeatedWork:
    """The stages of the parts that a cache could keep, where the user can add one."""

    stages: tuple[StageTime, ...] = ()

    @property
    def ms(self) -> float:
        """Their own work in ms per training step, summed over threads."""
        return sum(stage.work_ms for stage in self.stages)

    @property
    def effects(self) -> tuple[Effect, ...]:
        """What is saved when a cache keeps their output."""
        return tuple(stage.scaled(0.0) for stage in self.stages)

    @classmethod
    def measure(cls, cacheable: Cacheable, properties: DatasetProperties, pipeline: InputPipeline) -> Self:
        """Find the stages of each part with a function behind which the user's code can add a cache."""
        own = [part for part in cacheable.parts if any(one.function and properties.own(one) for one in part.kept)]
        ids = {stage.id for part in own for stage in part.kept}
        working = (stage for stage in pipeline.stages if stage.work_ms)
        return cls(tuple(stage for stage in working if stage.dataset and stage.dataset.id in ids))
