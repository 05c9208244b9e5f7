from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


class Limits(RuleLimits):
    share: float = share_limit(0.1)


def check(boards: GpuBoards, device: Device, limits: Limits = Limits()) -> Verdict:
    """Report the load by other programs of the GPUs that the run uses."""
    if device.kind is not DeviceKind.GPU:
        return NotApplicable(reason="the run used no GPU")
    others = max(board.others for board in boards.boards)
    if not others:
        return Healthy(summary="No other program computes on the GPUs of the run")
    known = [(one.others_share, one.name) for one in boards.boards if one.others_share is not None]
    if not known:
        return NotApplicable(
            reason=f"{counted(others, 'process', 'processes')} that may be of other programs use the GPU, and the "
            "driver does not tell how much each computes"
        )
    share, name = max(known, key=lambda one: one[0])
    table = Table.of(
        boards.boards,
        ("GPU", lambda one: f"{one.name} ({one.index})"),
        ("processes of other programs", lambda one: count(one.others)),
        (
            "share of the time with their kernels",
            lambda b: None if b.others_share is None else ratio(b.others_share),
        ),
    )
    return judged(
        Measure("processes of other programs", count(others)),
        Measure.share("share of the time with kernels of others", share, limits.share),
        healthy=f"Kernels of other programs were on the GPU for {percent(share)} of the time",
        finding=f"Kernels of other programs were on {name} for {percent(share)} of the time",
        details=[table],
        remedies=[Remedy("Give the run a GPU of its own", CODE["own-gpu"])],
        effects=[Effect(Stage.DEVICE, 1.0 - share, bound=Bound.AT_MOST)],
    )
