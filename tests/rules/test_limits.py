"""A limit that is set is the limit: the same facts, judged by another one, are judged otherwise."""

from tests.rules import test_unaligned_dimension as width_cases
from tests.rules import test_unfused_batch_norm as norm_cases
from tests.rules.kit import *
from tfdoctor.rules.input import input_bound, missing_prefetch, sequential_map
from tfdoctor.rules.operations import depthwise_convolution, unfused_batch_norm
from tfdoctor.rules.precision import idle_matrix_unit, unaligned_dimension
from tfdoctor.rules.recording import doubtful_recording

SLOW = StageTime(path="Root::Map", kind="Map", work_ms=10.0, wall_ms=10.0)
WAITING = Breakdown.of(input=10.0, device=20.0)
SMALL = (
    Doubt("6 steps were traced", "trace more", grave=False, limit="steps", amount=6),
    Doubt("uneven", "trace more", grave=False, limit="uneven", amount=0.2),
    Doubt("slowed", "read shares", grave=False, limit="slowed", amount=0.05),
    Doubt("busy", "wait", grave=False, limit="busy_cores", amount=0.3),
)


def by_input(**limits: float) -> Verdict:
    return input_bound.check(WAITING, None, None, None, None, input_bound.Limits(**limits))


def by_map(**limits: float) -> Verdict:
    pipeline = InputPipeline.of(SLOW)
    return sequential_map.check(
        pipeline, WAITING, Device(DeviceKind.GPU, 1, 1), None, None, sequential_map.Limits(**limits)
    )


def by_prefetch(**limits: float) -> Verdict:
    return missing_prefetch.check(InputPipeline.of(SLOW), WAITING, None, missing_prefetch.Limits(**limits))


def by_flops(**limits: float) -> Verdict:
    unit = MatrixUnit(unit="MXU", busy_ms=50.0, matrix_ms=30.0, utilization=0.2)
    return idle_matrix_unit.check(unit, idle_matrix_unit.Limits(**limits))


def by_kernels(**limits: float) -> Verdict:
    unit = MatrixUnit(unit="Tensor Cores", busy_ms=50.0, matrix_ms=20.0, on_unit_ms=8.0, off_unit_ms=12.0)
    return idle_matrix_unit.check(unit, idle_matrix_unit.Limits(**limits))


def by_depthwise(**limits: float) -> Verdict:
    rows = tuple(took(kind, kind, 10.0) for kind in ("DepthwiseConv2dNative", "Conv2D"))
    hardware = Hardware(DeviceKind.GPU, "example", bandwidth_bytes_s=4e10)
    return depthwise_convolution.check(Operations(rows), hardware, None, depthwise_convolution.Limits(**limits))


def by_width(**limits: float) -> Verdict:
    rows, hardware = Operations((width_cases.one_conv(),)), width_cases.CPU
    return unaligned_dimension.check(rows, hardware, None, unaligned_dimension.Limits(**limits))


def by_channels(**limits: float) -> Verdict:
    norms = norm_cases._norms(MOMENTS)  # noqa: SLF001 - its own example, of 48 channels
    return unfused_batch_norm.check(norms, Hardware(DeviceKind.CPU, "example"), unfused_batch_norm.Limits(**limits))


def by_quality(**limits: float) -> Verdict:
    return doubtful_recording.check(Quality(6, small=SMALL), doubtful_recording.Limits(**limits))


def _reaches(rule: Rule) -> bool:
    other = object()
    bound = replace(rule, limits=other).bound()
    return isinstance(bound, partial) and bound.keywords["limits"] is other


CASES = [
    (by_input, {}, {"share": 0.4}),
    (by_input, {}, {"ready_ms": 11.0}),
    (by_map, {}, {"threads": 0.5}),
    (by_prefetch, {}, {"serial_ms": 11.0}),
    (by_flops, {}, {"low": 0.1}),
    (by_kernels, {}, {"low_on_unit": 0.3}),
    (by_kernels, {}, {"small": 0.5}),
    (by_depthwise, {}, {"share": 0.6}),
    (by_width, {}, {"waste": 0.5}),
    (by_width, {}, {"worth": 0.5}),
    (by_width, {}, {"smallest": 3.0}),
    (by_channels, {}, {"half_speed": 7.0}),
    (by_quality, {"steps": 7.0}, {}),
    (by_quality, {"uneven": 0.1}, {}),
    (by_quality, {"slowed": 0.01}, {}),
    (by_quality, {"busy_cores": 0.1}, {}),
]


@cases(*CASES)
def test_a_limit_decides(by: object, found: dict[str, float], not_found: dict[str, float]) -> None:
    assert callable(by)
    assert isinstance(by(**found), Finding)
    assert isinstance(by(**not_found), Healthy | NotApplicable)


def test_a_doubt_that_a_limit_lets_pass_is_none() -> None:
    quality = Quality(9, (Doubt("slowed", "read shares", grave=False, limit="slowed", amount=0.15),))
    lenient = doubtful_recording.Limits(slowed=0.2)
    found = doubtful_recording.check(quality), doubtful_recording.check(quality, lenient)
    assert kinds(*found) == [Finding, Healthy]


def test_wider_is_proposed_where_narrower_keeps_too_few() -> None:
    assert "Choose 48" in as_finding(by_width(shrinkable=0.98)).remedies[0].action


def test_half_a_rate_is_what_the_limit_says() -> None:
    slow, quick = by_channels(full_speed=32.0, half_rate=0.1), by_channels(full_speed=32.0)
    assert effects(slow)[0][2] > effects(quick)[0][2]


def test_the_limits_of_a_rule_reach_its_check() -> None:
    limited = [rule for rule in all_rules() if rule.limits]
    assert limited
    assert [rule.name for rule in limited if not _reaches(rule)] == []
