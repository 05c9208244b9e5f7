from tfdoctor.families.kit import *
from tfdoctor.rules.execution.slow_cudnn_path.recurrent_layers import RecurrentLayers

__doc__, CODE = page(__file__)
PRECONDITIONS = (only_on(DeviceKind.GPU, "cuDNN computes recurrent layers on GPUs only"), figures_per_step)


class Limits(RuleLimits):
    share: float = share_limit(0.05)


def check(layers: RecurrentLayers, breakdown: Breakdown, limits: Limits = Limits()) -> Verdict:
    """Add up the time of the layers off cuDNN, and of launching their kernels."""
    looped = layers.looped
    if not looped:
        ran = counted(layers.ran, "recurrent layer")
        return Healthy(summary=f"{ran} ran, and none was off cuDNN")
    device_ms, launching_ms = sum(one.ms for one in looped), sum(one.launching_ms for one in looped)
    taken = device_ms + launching_ms
    share = breakdown.share(taken)
    remedies = []
    for one in looped:
        obstacle, code = one.obstacles[0], CODE.get(one.obstacles[0].name.lower(), "")
        rate = (one.layer.recurrent.recurrent_dropout if one.layer.recurrent else None) or 0.0
        remedies.append(Remedy(obstacle.action, code.format(kind=one.layer.kind, rate=rate), one.layer.at))
    return judged(
        Measure.share("share of the step in recurrent layers off cuDNN", share, limits.share),
        Measure("time of the GPU in them per step", ms(device_ms)),
        Measure("idle time of the GPU while the host launches their kernels", ms(launching_ms)),
        Table.of(
            looped,
            ("layer", lambda one: one.layer.name),
            ("your line", lambda one: one.layer.at),
            ("off cuDNN because of", lambda one: ", ".join(obstacle.label for obstacle in one.obstacles)),
            ("time per step", lambda one: ms(one.ms)),
        ),
        healthy=f"{counted(len(looped), 'recurrent layer')} off cuDNN: {milliseconds(taken)} per step",
        remedies=dict.fromkeys(remedies),
        effects=(
            *(row.scaled(0.0, Bound.AT_MOST) for one in looped for row in one.rows),
            *Effect.of_stages({Stage.HOST: launching_ms}, StepWork.LAUNCHING),
        ),
    )
