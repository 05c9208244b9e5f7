"""A limit that is set is the limit: the same facts, judged by another one, are judged otherwise."""

from tests.rules import test_unaligned_dimension as width_cases
from tests.rules import test_unfused_batch_norm as norm_cases
from tests.rules.kit import *
from tfdoctor.rules.input import input_bound, missing_prefetch, sequential_map
from tfdoctor.rules.operations import depthwise_convolution, unfused_batch_norm
from tfdoctor.rules.precision import idle_matrix_unit, unaligned_dimension
from tfdoctor.rules.recording import doubtful_recording

SLOW = InputPipeline.of(StageTime(path="Root::Map", kind="Map", work_ms=10.0, wall_ms=10.0))
WAITING = Breakdown.of(input=10.0, device=20.0)
SMALL = (
    Doubt("6 steps were traced", "trace more", grave=False, limit="steps", amount=6),
    Doubt("uneven", "trace more", grave=False, limit="uneven", amount=0.2),
    Doubt("slowed", "read shares", grave=False, limit="slowed", amount=0.05),
    Doubt("busy", "wait", grave=False, limit="busy_cores", amount=0.3),
)
TPU = MatrixUnit(unit="MXU", busy_ms=50.0, matrix_ms=30.0, utilization=0.2)
GPU = MatrixUnit(unit="Tensor Cores", busy_ms=50.0, matrix_ms=20.0, on_unit_ms=8.0, off_unit_ms=12.0)
SLOW_MEMORY = Hardware(DeviceKind.GPU, "example", bandwidth_bytes_s=4e10)
CONVOLUTIONS = Operations(tuple(took(kind, kind, 10.0) for kind in ("DepthwiseConv2dNative", "Conv2D")))
OF_48 = norm_cases._norms(MOMENTS)  # noqa: SLF001 - its own example, of 48 channels
# A rule, and its facts
INPUT = input_bound, WAITING, None, None, None, None, None
MAP = sequential_map, SLOW, WAITING, Device(DeviceKind.GPU, 1, 1), None, None
AHEAD = missing_prefetch, SLOW, WAITING, None
DEPTHWISE = depthwise_convolution, CONVOLUTIONS, SLOW_MEMORY, None
WIDTH = unaligned_dimension, Operations((width_cases.one_conv(),)), width_cases.CPU, None
CHANNELS = unfused_batch_norm, OF_48, Hardware(DeviceKind.CPU, "example")
QUALITY = doubtful_recording, Quality(6, small=SMALL)


def judged(of: tuple[Any, ...], **limits: float) -> Verdict:
    rule, *facts = of
    verdict: Verdict = rule.check(*facts, rule.Limits(**limits))
    return verdict


@cases(
    (INPUT, {}, {"share": 0.4}),
    (INPUT, {}, {"ready_ms": 11.0}),
    (MAP, {}, {"threads": 0.5}),
    (AHEAD, {}, {"serial_ms": 11.0}),
    ((idle_matrix_unit, TPU), {}, {"low": 0.1}),
    ((idle_matrix_unit, GPU), {}, {"low_on_unit": 0.3}),
    ((idle_matrix_unit, GPU), {}, {"small": 0.5}),
    (DEPTHWISE, {}, {"share": 0.6}),
    (WIDTH, {}, {"waste": 0.5}),
    (WIDTH, {}, {"worth": 0.5}),
    (WIDTH, {}, {"smallest": 3.0}),
    (CHANNELS, {}, {"half_speed": 7.0}),
    (QUALITY, {"steps": 7.0}, {}),
    (QUALITY, {"uneven": 0.1}, {}),
    (QUALITY, {"slowed": 0.01}, {}),
    (QUALITY, {"busy_cores": 0.1}, {}),
)
def test_a_limit_decides(of: tuple[Any, ...], found: dict[str, float], not_found: dict[str, float]) -> None:
    assert isinstance(judged(of, **found), Finding)
    assert isinstance(judged(of, **not_found), Healthy | NotApplicable)


def test_a_limit_changes_what_is_said() -> None:
    slowed = doubtful_recording, Quality(9, (replace(SMALL[2], amount=0.15),))
    assert kinds(judged(slowed), judged(slowed, slowed=0.2)) == [Finding, Healthy]
    # Wider is proposed where narrower keeps too few
    assert "Choose 48" in first_action(judged(WIDTH, shrinkable=0.98))
    slow, quick = judged(CHANNELS, full_speed=32.0, half_rate=0.1), judged(CHANNELS, full_speed=32.0)
    assert effects(slow)[0][2] > effects(quick)[0][2]


def test_the_limits_of_a_rule_reach_its_check() -> None:
    other, limited = object(), [rule for rule in all_rules() if rule.limits]
    bound: dict[str, Any] = {rule.name: replace(rule, limits=other).bound() for rule in limited}
    assert bound
    assert [name for name, check in bound.items() if check.keywords["limits"] is not other] == []
