from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


# Draws that only another method avoids. Uniform numbers take 0.4 of their time on a CPU (see REMAINING).
NORMAL = frozenset(("RandomStandardNormal", "StatelessRandomNormal", "StatelessRandomNormalV2"))
# Draws that normal numbers of the same mean and variance replace where the mean is large.
POISSON = frozenset(("RandomPoisson", "RandomPoissonV2", "StatelessRandomPoisson"))

# Time of the replacement relative to these, on a CPU: a million uniform, normal and truncated normal numbers took
# 7.3, 18.4 and 39.5 ms, stateless ones 6.8, 21.7 and 40.4 ms (AMD EPYC, two cores, TensorFlow 2.21, 2026-11-21); a
# million Poisson numbers of a mean of 5 and of 50 took 275 and 205 ms, their normal approximation 21 ms (Intel
# Xeon, two shared cores, TensorFlow 2.21, 2026-11-22, least of nine).
REMAINING = {
    "TruncatedNormal": 0.18, "StatelessTruncatedNormal": 0.18, "StatelessTruncatedNormalV2": 0.18,
    **dict.fromkeys(POISSON, 0.1),
}  # fmt: skip

# Draws of categories, which no uniform noise can replace.
CHOICES = frozenset(("Multinomial", "StatelessMultinomial"))

# Expensive distributions without a measured ratio: how much time remains is unknown.
OTHERS = frozenset(
    (
        "ParameterizedTruncatedNormal", "StatelessParameterizedTruncatedNormal", "RandomGamma",
        "StatelessRandomGammaV2", "StatelessRandomGammaV3", "Multinomial", "StatelessMultinomial",
        "StatelessRandomBinomial",
    )
)  # fmt: skip

PRECONDITIONS = (
    found(
        Operations,
        "The step draws no random numbers from an expensive distribution",
        lambda operations: _drawn(operations, normal=True),
    ),
)


class Limits(RuleLimits):
    share: float = share_limit(0.05)


def check(operations: Operations, hardware: Hardware, limits: Limits = Limits()) -> Verdict:
    """Price each expensive draw at what replaces it."""
    rows, drawn = _drawn(operations), _drawn(operations, normal=True)
    part, both = (operations.part(sum(row.ms for row in some)) for some in (rows, drawn))
    work = "drawing from expensive distributions"
    takes = "Drawing from expensive random distributions takes"
    if part.share >= limits.share:
        known = REMAINING if hardware.kind == DeviceKind.CPU else {}
        action, code = "Draw uniform numbers with the same variance, or draw in the input pipeline", "noise"
        if all(row.type in CHOICES for row in rows):
            action, code = "Draw fewer numbers, or draw them in the input pipeline", "in-input"
        elif any(row.type in POISSON for row in rows):
            action = "Draw normal numbers with the mean and variance of the Poisson distribution"
            code = "approximation"
        at = next((row.at for row in rows if row.at), None)
        left = (
            row.scaled(known[row.type]) if row.type in known else row.scaled(0.0, Bound.AT_MOST) for row in rows
        )
        return spared(
            part, limits.share, work, left,
            finding=f"{takes} {part}",
            remedies=[Remedy(action, CODE[code], at)],
            shown=[layer_table(rows)],
        )  # fmt: skip
    summary, measures = f"{takes} {both}", both.measures(work, limits.share)
    if both.share < limits.share:
        return Healthy(summary=summary, evidence=measures)
    # The method may need normal noise: only another model avoids it.
    why = f"{summary}; normal noise is often a part of the method"
    time = PartTime(Stage.DEVICE, ms(both.ms), why)
    return Healthy(summary=why, evidence=(*measures, layer_table(drawn)), necessary=(time,))


def _drawn(operations: Operations, *, normal: bool = False) -> list[OperationTime]:
    """Return the draws from expensive distributions, and from normal ones after them."""
    rows = [row for row in operations.rows if row.type in REMAINING or row.type in OTHERS]
    return rows + [row for row in operations.rows if normal and row.type in NORMAL]
