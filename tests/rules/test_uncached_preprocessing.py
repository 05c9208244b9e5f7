"""uncached-preprocessing: identical work in every epoch, whose output a cache could store."""

from typing import Any

import pytest

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.cacheable import Cacheable
from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.machine.cpu_contention import CpuContention
from tfdoctor.facts.machine.host_memory import HostMemory
from tfdoctor.facts.run.program import Dataset, DatasetParameters
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules import uncached_preprocessing
from tfdoctor.verdict import Bound, Finding, Healthy, Location, NotApplicable, Stage, Verdict

SPEC = "TensorSpec(shape=(250,), dtype=tf.float32, name=None)"
ROOM = HostMemory(total=10e6, used=6e6)


def source(**more: Any) -> Dataset:
    parts: dict[str, Any] = {"kind": "_TensorSliceDataset", "cardinality": 1000}
    return Dataset(id=0, **(parts | more))


def stage(number: int, kind: str, **more: Any) -> Dataset:
    return Dataset(id=number, kind=f"_{kind}Dataset", inputs=(number - 1,), **more)


def mapped(number: int, *types: str, name: str = "decode", **more: Any) -> Dataset:
    parts = {
        "function": name,
        "function_at": Location("train.py", 9),
        "at": Location("train.py", 20 + number),
        "element": SPEC,
        "types": frozenset(types),
        "stateful": frozenset(name for name in types if "Random" in name),
    }
    return stage(number, "Map", **(parts | more))


ALONE = CpuContention(crowded=False)
CROWDED = CpuContention(crowded=True, cores=1.0, compute_ms=38.0, beside=0.95)
UNKNOWN = CpuContention(crowded=None)


def check(
    *datasets: Dataset,
    passes: float | None = 4.0,
    wait: float = 30.0,
    memory: HostMemory | Unavailable = ROOM,
    contention: CpuContention = ALONE,
) -> Verdict:
    """Each dataset with a function works for 10 ms."""
    chain = tuple(reversed(datasets))
    properties = DatasetProperties(chain, passes)
    stages = [
        StageTime(
            path=f"Root::Prefetch::{dataset.id}",
            kind="Map",
            work_ms=10.0,
            wall_ms=10.0,
            dataset=dataset,
        )
        for dataset in datasets
        if dataset.function
    ]
    ahead = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
    return uncached_preprocessing.check(
        Cacheable.measure(properties),
        properties,
        InputPipeline.of(ahead, *stages),
        Breakdown.of(input=wait, device=40.0 - wait),
        memory,
        contention,
    )


def subjects(verdict: Verdict) -> list[str]:
    assert isinstance(verdict, Finding)
    return [effect.subject.rpartition("::")[2] for effect in verdict.effects]


def test_a_function_that_gives_the_same_is_found() -> None:
    verdict = check(source(), mapped(1, "DecodePng"))
    assert isinstance(verdict, Finding)
    assert verdict.remedies[0].at == Location("train.py", 21)
    assert verdict.remedies[0].edit_id == "cache"
    assert "map(decode," in verdict.remedies[0].code


def test_only_what_comes_before_a_random_function() -> None:
    verdict = check(source(), mapped(1, "DecodePng"), mapped(2, "RandomUniform", name="flip"))
    assert subjects(verdict) == ["1"]


def test_a_cache_after_a_random_function_is_not_advised() -> None:
    """It would freeze the augmentation."""
    verdict = check(source(), mapped(1, "RandomUniform", name="flip"), mapped(2, "DecodePng"))
    assert isinstance(verdict, Healthy)
    assert "flip" in verdict.summary


def test_work_before_an_existing_cache_is_healthy() -> None:
    assert isinstance(check(source(), mapped(1, "DecodePng"), stage(2, "Cache")), Healthy)


def test_a_cache_that_froze_the_augmentation_is_mentioned() -> None:
    random = mapped(1, "RandomUniform", name="flip")
    verdict = check(source(), random, stage(2, "Cache"))
    assert isinstance(verdict, Healthy)
    assert "flip" in verdict.summary


def test_work_after_a_cache_is_found() -> None:
    verdict = check(source(), mapped(1, "Mul"), stage(2, "Cache"), mapped(3, "DecodePng"))
    assert subjects(verdict) == ["3"]


@pytest.mark.parametrize("kind", ["Shuffle", "Repeat"])
def test_a_shuffle_or_repetition_before_must_move_behind(kind: str) -> None:
    verdict = check(source(), stage(1, kind), mapped(2, "DecodePng"))
    assert isinstance(verdict, Finding)
    assert kind.lower() in verdict.remedies[0].action
    assert f".{kind.lower()}(" in verdict.remedies[0].code
    assert not verdict.remedies[0].edit_id


@pytest.mark.parametrize(("kind", "of"), [("Shuffle", Healthy), ("Prefetch", Finding)])
def test_batches_of_shuffled_elements_differ_each_time(kind: str, of: type) -> None:
    batch = stage(2, "Batch", parameters=DatasetParameters(batch_size=10), cardinality=100)
    assert isinstance(check(source(), stage(1, kind), batch, mapped(3, "DecodePng")), of)


def test_a_shuffle_that_is_the_same_each_time_may_stay() -> None:
    fixed = stage(1, "Shuffle", parameters=DatasetParameters(reshuffle_each_iteration=False))
    verdict = check(source(), fixed, mapped(2, "DecodePng"))
    assert isinstance(verdict, Finding)
    assert "shuffle" not in verdict.remedies[0].code


@pytest.mark.parametrize(
    ("passes", "kind"), [(None, NotApplicable), (1.0, Healthy), (1.9, Healthy), (2.0, Finding)]
)
def test_one_pass_gains_nothing(passes: float | None, kind: type) -> None:
    assert isinstance(check(source(), mapped(1, "DecodePng"), passes=passes), kind)


@pytest.mark.parametrize(("used", "kind"), [(8e6, Finding), (8.1e6, Healthy)])
def test_a_megabyte_must_fit_into_half_of_the_free_memory(used: float, kind: type) -> None:
    memory = HostMemory(total=10e6, used=used)
    assert isinstance(check(source(), mapped(1, "DecodePng"), memory=memory), kind)


def test_unknown_memory_is_no_room() -> None:
    verdict = check(source(), mapped(1, "DecodePng"), memory=Unavailable("no memory was sampled"))
    assert isinstance(verdict, NotApplicable)
    assert "no memory was sampled" in verdict.reason


@pytest.mark.parametrize(
    "more",
    [
        {"element": "TensorSpec(shape=(None, 3), dtype=tf.uint8, name=None)"},
        {"types": None},
        {"python": True},
        {"types": frozenset(("ReadVariableOp",)), "stateful": frozenset(("ReadVariableOp",))},
    ],
)
def test_what_is_not_known_is_not_advised(more: dict[str, Any]) -> None:
    assert isinstance(check(source(), mapped(1, "DecodePng", **more)), NotApplicable)


def test_files_of_unknown_length_are_not_advised() -> None:
    assert isinstance(check(source(cardinality=None), mapped(1, "DecodePng")), NotApplicable)


@pytest.mark.parametrize(("wait", "kind"), [(2.0, Finding), (1.9, Healthy)])
def test_only_a_step_that_waits(wait: float, kind: type) -> None:
    assert isinstance(check(source(), mapped(1, "DecodePng"), wait=wait), kind)


def test_pipelines_that_meet_must_all_give_the_same() -> None:
    labels = Dataset(id=9, kind="_TensorSliceDataset", cardinality=1000)
    shuffled = Dataset(id=8, kind="_ShuffleDataset", inputs=(9,))
    both = Dataset(id=1, kind="_ZipDataset", inputs=(0, 9), cardinality=1000)
    other = Dataset(id=1, kind="_ZipDataset", inputs=(0, 8), cardinality=1000)

    assert isinstance(check(labels, source(), both, mapped(2, "DecodePng")), Finding)
    assert isinstance(check(labels, shuffled, source(), other, mapped(2, "DecodePng")), Healthy)


def test_functions_of_a_library_are_not_judged() -> None:
    """The user cannot put a cache into Keras' own pipeline."""
    assert isinstance(check(source(), mapped(1, "DecodePng", function_at=None)), Healthy)


@pytest.mark.parametrize(
    ("contention", "of"), [(CROWDED, Finding), (ALONE, Healthy), (UNKNOWN, NotApplicable)]
)
def test_work_that_keeps_the_compute_from_the_cores_counts_without_a_wait(
    contention: CpuContention, of: type
) -> None:
    """A CPU computes and makes batches: a step may be slow for work that it never waits for."""
    verdict = check(source(), mapped(1, "DecodePng"), wait=0.0, contention=contention)
    assert isinstance(verdict, of)
    if isinstance(verdict, Finding):
        _, relief = verdict.effects
        assert (relief.stage, relief.bound) == (Stage.DEVICE, Bound.AT_MOST)
        assert relief.scales == pytest.approx(1 - 10.0 * 0.95 / 38.0)


@pytest.mark.parametrize(("cores", "kind"), [(1.3, NotApplicable), (5.2, Healthy), (1.2, Finding)])
def test_between_little_and_a_fifth_of_the_step_only_a_trial_tells(
    cores: float, kind: type
) -> None:
    """Measured: 8 to 13 % of the step in theory saved 15, 3 and -6 % in trials."""
    some = CpuContention(crowded=True, cores=cores, compute_ms=40.0)
    verdict = check(source(), mapped(1, "DecodePng"), wait=0.0, contention=some)
    assert isinstance(verdict, kind)
