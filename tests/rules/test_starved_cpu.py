"""starved-cpu: the pipeline keeps all cores at work, and the step waits."""

import pytest

from tests.rules.kit import *
from tfdoctor.facts.input.map_functions import DecodedImage
from tfdoctor.rules.input import sequential_map, starved_cpu
from tfdoctor.rules.input.starved_cpu import CpuPressure


def example(
    work: float = 28.0,
    *,
    breakdown: Breakdown | None = None,
    cores: Cores = Cores(2.0, 1.9),
    device: Device = Device(DeviceKind.CPU, 1, 1),
    pressure: CpuPressure | None = None,
    decodes: DecodedImages | None = None,
    **more: Any,
) -> Verdict:
    """A decode takes 28 of the 30 ms of core time that two cores offer in a step of 15 ms."""
    stage = StageTime.of("Root::Prefetch::ParallelMapV2", work, cores.busy, **more)
    step = breakdown or Breakdown.of(input=11.0, device=4.0)
    return starved_cpu.check(
        InputPipeline.of(StageTime.of("Root::Prefetch"), stage),
        step,
        cores,
        device,
        pressure or CpuPressure(),
        CpuContention.measure(device, cores, step),
        decodes,
    )


sick = example


def healthy() -> Verdict:
    """A smaller decode, for which the step does not wait."""
    return example(5.0, breakdown=Breakdown.of(input=0.1, device=4.0), cores=Cores(2.0, 1.5))


ON_GPU, ON_CPU = Device(DeviceKind.GPU, 1, 1), Device(DeviceKind.CPU, 1, 1)
FULL = Cores(4.0, busy=3.9)


def check(
    work: float = 76.0, *, wait: float = 15.0, host: float = 0.0, cores: Cores = FULL, **more: Any
) -> Verdict:
    """Steps of 20 ms, in which four cores offer 80 ms."""
    step = Breakdown.of(input=wait, host=host, device=20.0 - wait - host)
    return example(work, breakdown=step, cores=cores, **more)


def actions(verdict: Verdict) -> str:
    return "\n".join(f"{remedy.action}\n{remedy.code}" for remedy in as_finding(verdict).remedies)


def test_the_stages_must_need_nearly_all_that_the_cores_offer() -> None:
    assert kinds(check(64.1), check(63.9)) == [Finding, Healthy]


def test_threads_that_sleep_in_a_stage_do_not_use_a_core() -> None:
    assert kinds(*(check(cores=Cores(4.0, busy=busy)) for busy in (3.0, 2.9))) == [Finding, NotApplicable]


def test_a_step_that_does_not_wait_is_not_starved() -> None:
    """An accelerator computes without the cores."""
    assert kinds(*(check(wait=wait, device=ON_GPU) for wait in (1.0, 0.9))) == [Finding, Healthy]


def test_a_cpu_computes_on_the_cores_that_the_input_takes() -> None:
    """No step waits, but at most the 4 ms of compute are slowed."""
    found = effects(check(wait=0.0, host=16.0))
    assert [(part, bound) for part, _, _, bound in found] == [(Stage.DEVICE, Bound.AT_MOST)]
    assert isinstance(check(wait=0.0, host=16.1), Healthy)


def test_smaller_images_are_advised_where_decoding_is_most_of_the_work() -> None:
    assert ["ratio=4" in actions(check(image_ms=images)) for images in (38.0, 37.9)] == [True, False]


def test_smaller_images_spare_the_decoding_only() -> None:
    found = (check(152.0, wait=0.0, cores=Cores(8.0, busy=7.8), image_ms=time) for time in (0.0, 77.0))
    whole, part = (effects(one)[0][2] for one in found)
    assert part > whole


def test_cores_used_by_other_programs_or_unsampled_are_not_judged() -> None:
    assert "0.8 cores" in as_not_applicable(check(cores=Cores(4.0, busy=3.2, others=0.8))).reason
    assert isinstance(check(cores=Cores(4.0, busy=3.9, sampled=False)), NotApplicable)


def test_python_does_not_run_on_all_cores() -> None:
    assert kinds(check(python_ms=38.0), check(python_ms=39.0)) == [Finding, NotApplicable]


def test_a_quota_that_holds_the_run_back_is_named_first() -> None:
    for held, named in ((0.05, True), (0.04, False), (None, False)):
        verdict = as_finding(check(pressure=CpuPressure(throttled=held, quota=4.0)))
        assert ("quota" in verdict.summary, "CPU limit" in verdict.remedies[0].action) == (named, named)


def test_other_machines_are_the_last_remedy_with_the_code_to_use_them() -> None:
    verdict = as_finding(check())
    assert "service.distribute" in verdict.remedies[-1].code
    compile(verdict.remedies[-1].code, "remedy", "exec")


def test_only_an_accelerator_can_take_the_augmentation() -> None:
    assert ["RandomFlip" in actions(check(device=device)) for device in (ON_GPU, ON_CPU)] == [True, False]


def test_the_remedy_points_at_the_line_of_the_most_expensive_stage() -> None:
    written = Dataset(id=1, kind="_ParallelMapDataset", function="decode", at=Location("t.py", 9))
    assert as_finding(check(dataset=written)).remedies[0].at == Location("t.py", 9)


def test_where_no_core_is_free_a_map_on_more_threads_saves_nothing() -> None:
    """Both rules on one recording: a sequential map, while the compute fills the other cores."""
    pipeline = InputPipeline.of(StageTime.of("Root::Prefetch"), StageTime.of("Root::Prefetch::Map", 20.0))
    breakdown, cores = Breakdown.of(input=15.0, device=5.0), Cores(1.0, busy=1.0)
    model = StepModel(
        device=DeviceKind.CPU, exposed=breakdown.median, segments=pipeline.segments, cores=cores, input_ms=20.0
    )
    contention = CpuContention.measure(ON_CPU, cores, breakdown)
    threads = as_finding(sequential_map.check(pipeline, breakdown, ON_CPU, cores, None))
    less = as_finding(starved_cpu.check(pipeline, breakdown, cores, ON_CPU, None, contention, None))
    assert model.saving(threads.effects) == near(0.0)
    # The compute gets the core, which as many threads of the input shared with it.
    assert model.saving(less.effects) == near(15.0 + 0.5 * 5.0)


def test_a_cpus_compute_gains_what_the_input_leaves() -> None:
    assert {one[0] for one in effects(check(device=ON_CPU))} == {Stage.INPUT, Stage.DEVICE}
    assert {one[0] for one in effects(check(device=ON_GPU))} == {Stage.INPUT}


def test_images_larger_than_used_are_left_to_their_own_rule() -> None:
    slow = StageTime.of("Root::Prefetch::ParallelMapV2", 76.0)
    cases = ((200, 200), 0.5), ((199, 200), 0.5), ((200, 200), 0.49)
    images = (DecodedImage(slow, "DecodeJpeg", decoded, (100, 100), share) for decoded, share in cases)
    found = [check(decodes=DecodedImages((image,))) for image in images]
    assert kinds(*found) == [NotApplicable, Finding, Finding]


# CpuPressure: what the kernel counted of a run that waited for processors.


SECOND = 1_000_000_000


def sample(at: float, **host: Any) -> dict[str, Any]:
    return {"unix_ns": round(at * SECOND), "host": host}


def test_a_counter_that_grew_for_half_of_the_time_is_a_half() -> None:
    rows = [sample(n, throttled_us=500_000 * n, psi_cpu_us=250_000 * n) for n in (1, 2, 3)]
    found = CpuPressure.measure(recording(samples=rows))
    assert (found.throttled, found.waiting) == near((0.5, 0.25))


def test_only_what_lies_around_the_traced_window_counts() -> None:
    held = [0, 900_000, 900_000, 1_000_000, 5_000_000]
    rows = [sample(n, throttled_us=us) for n, us in enumerate(held, start=1)]
    window = TracedWindow(started_unix_ns=round(2.5 * SECOND), stopped_unix_ns=round(3.5 * SECOND))
    found = CpuPressure.measure(recording(samples=rows, manifest=manifest(window=window)))
    assert found.throttled == near(0.05)


def test_what_the_kernel_does_not_tell_is_unknown() -> None:
    found = CpuPressure.measure(recording(samples=[sample(1, quota_cores=1.5), sample(2, quota_cores=1.5)]))
    assert (found.throttled, found.waiting, found.quota) == (None, None, 1.5)


def test_a_difference_needs_two_samples() -> None:
    for rows in ([], [sample(1, throttled_us=3)]):
        with pytest.raises(Unavailable, match="sampled less than twice"):
            CpuPressure.measure(recording(samples=rows))
