from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (timed_steps,)

# NumPy's default type, of which a cast to anything else can be made once, where the array is loaded.
WIDE = "float64"


class Limits(RuleLimits):
    share: float = share_limit(0.05)
    least_ms: float = limit(0.2)


def check(conversions: Conversions, breakdown: Breakdown, limits: Limits = Limits()) -> Verdict:
    """Compare the time to convert and cast the same arrays again with the step."""
    if not conversions.arrays:
        return Healthy(summary="The training function is given tensors, which need no conversion")
    if any(array.same is None for array in conversions.arrays):
        return NotApplicable(
            reason="the recording does not contain two calls with the same number of arrays, or is of an earlier "
            "version; record the run again"
        )
    same = [array for array in conversions.arrays if array.same]
    wide = [array for array in conversions.arrays if not array.same and array.dtype == WIDE]
    wide_ms = sum(array.cast.ms for array in wide if array.cast)
    again_ms = sum(array.ms for array in same) + sum(array.cast.ms for array in same if array.cast)
    least_ms = max(limits.least_ms, limits.share * breakdown.step_ms)
    again, wide = same if again_ms >= least_ms else [], wide if wide_ms >= least_ms else []
    does = (
        "Feeding the same arrays" if any(one.fed for one in conversions.arrays) else "Converting the same arguments"
    )
    converting = f"{does} again takes {milliseconds(again_ms)} of {breakdown.each_step}"
    casting = f"Casting float64 batches takes {milliseconds(wide_ms)} of {breakdown.each_step}"
    table = Table.of(
        sorted(conversions.arrays, key=lambda array: -array.ms),
        ("argument", lambda array: array.place or "unknown"),
        ("type and shape", lambda array: f"{array.dtype} {list(array.shape)}"),
        ("values", lambda array: "the same" if array.same else "new ones"),
        ("conversion per step", lambda array: ms(array.ms)),
        ("cast per step", lambda array: ms(array.cast.ms) if array.cast else "no cast"),
        most=8,
    )
    # What passing tensors instead spares: a batch that Python makes may have to be cast there at each step.
    times = {
        Stage.HOST: sum(array.host_ms for array in again),
        Stage.BETWEEN: sum(array.between_ms for array in again),
    }
    fed, remedies = [array for array in again if array.fed], []
    if fed:
        code = "\n".join(CODE["fed"].format(array.place, list(array.shape), array.cast_to) for array in fed)
        remedies = [Remedy("Feed the arrays that stay the same once, before the loop", code, conversions.at)]
    elif again:  # an argument is named by its place in the code: array_0 is the first
        names = [(f"array_{array.place.replace('.', '_')}", array.cast_to) for array in again]
        code = "\n".join(
            f"{name} = tf.constant({name}{f', tf.{cast_to}' if cast_to else ''})  # before the loop"
            for name, cast_to in names
        )
        action = f"Convert {counted(len(again), 'array')} to tensors once, before the loop"
        remedies = [Remedy(action, code, conversions.at)]
    if wide:
        remedies.append(Remedy("Make the arrays float32 where they are loaded", CODE["loaded"], conversions.at))
    least = ms(limits.least_ms)
    return judged(
        Measure("time converting and casting the same arrays per step", ms(again_ms), least),
        Measure("time casting new float64 arrays per step", ms(wide_ms), least),
        Measure.share(
            "larger of the two as a share of the step", max(again_ms, wide_ms) / breakdown.step_ms, limits.share
        ),
        Measure("bytes of arrays that stay the same", nbytes(sum(array.nbytes for array in same))),
        healthy=converting,
        finding=converting if again else casting,
        wrong=bool(again or wide),
        details=[table],
        remedies=remedies,
        effects=(
            *Effect.of_stages(times, StepWork.CONVERSION, bound=Bound.AT_MOST if fed else Bound.EXPECTED),
            *(array.cast.scaled(0.0) for array in again if array.cast),
            *(array.cast.scaled(0.0, Bound.AT_MOST) for array in wide if array.cast),
        ),
    )
