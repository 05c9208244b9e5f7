from tfdoctor.facts.gpu.activity import D2H, H2D, PAGEABLE, Transfers
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (figures_per_step,)


class Limits(RuleLimits):
    share: float = share_limit(0.02)


def check(transfers: Transfers, breakdown: Breakdown, framework: Framework, limits: Limits = Limits()) -> Verdict:
    """Compare the copies that no kernel hides with the step."""
    copies = [copy for copy in (transfers[H2D], transfers[D2H]) if copy.count]
    exposed_ms = sum(copy.exposed_ms for copy in copies)
    taken = f"of {breakdown.each_step} while no kernel runs"
    worst = max(copies or [transfers[H2D]], key=lambda copy: copy.exposed_ms)
    source = ", from pageable memory" if worst.host_memory == PAGEABLE else ""
    table = Table.of(
        copies,
        ("direction", lambda copy: copy.direction),
        ("copies per step", lambda copy: count(copy.count)),
        ("bytes per step", lambda copy: None if copy.nbytes is None else nbytes(copy.nbytes)),
        ("time per step", lambda copy: ms(copy.ms)),
        ("time while no kernel runs", lambda copy: ms(copy.exposed_ms)),
        ("bandwidth", lambda copy: None if copy.rate is None else bandwidth(copy.rate)),
        ("host memory", lambda copy: copy.host_memory),
    )
    ahead, smaller = CODE["prefetch"], CODE["smaller"]
    if framework.foreign:
        ahead, smaller = (CODE["put"] if framework.name == JAX else ""), ""
    there = (
        Remedy("Copy the next batch while the GPU trains on the current one", ahead),
        Remedy("Copy smaller data types and cast on the GPU", smaller),
    )
    back = (Remedy("Keep results on the GPU and read them every 100 steps", CODE["read"]),)
    return judged(
        Measure.share("share of the step copying while no kernel runs", breakdown.share(exposed_ms), limits.share),
        healthy=f"Copies between host and GPU take {milliseconds(exposed_ms)} {taken}",
        finding=f"Copies from {worst.direction} take {milliseconds(worst.exposed_ms)} {taken}{source}",
        details=[table],
        remedies=back if worst.direction == D2H else there,
        effects=[
            Effect(Stage.TRANSFER, 0.0, one.direction, ms(one.exposed_ms), bound=Bound.AT_MOST) for one in copies
        ],
    )
