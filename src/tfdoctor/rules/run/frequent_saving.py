from math import sqrt

from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (whole_run,)


class Limits(RuleLimits):
    share: float = share_limit(0.05)
    failure_hours: float = limit(1.0)


def check(phases: RunPhases, calls: RunCalls, limits: Limits = Limits()) -> Verdict:
    """Find lines that save so often that a failure could not lose as much."""
    made = calls.of(RunCall.SAVE)
    if not made:
        return none_seen(phases, calls, "saved nothing")
    training = (call for call in made if not (call.before_training or call.after_training))
    saves = []
    for call in (call for call in training if call.at and calls.within_epochs(call)):
        apart_ms, best_ms = phases.recurring_ms / call.count, _best_ms(call, limits)
        left = min(1.0, apart_ms / best_ms) if best_ms else 1.0  # at the best distance
        times = max(1, min(int(1.0 / left), call.count))  # the run still has one
        each = f"saves {counted(call.count, 'time')}, {milliseconds(call.each_ms)} each: {duration(call.ms)}"
        every = f"({percent(call.ms / phases.total_ms)} of the run), once every {duration(apart_ms)} of training"
        rarer = Remedy(
            f"Save about every {duration(best_ms)}", f"# {times} times as far apart\n{CODE['by-time']}", call.at,
            changes="a failure loses more of the training",
        )  # fmt: skip
        place = RunPlace(
            at=call.at, phase=Phase.SAVING, ms=call.ms, left=left, recurs=Recurrence.PER_CALL, times=call.count,
            says=f"{call.name} at {location(call.at)} {each} {every}", remedies=(rarer,), call=call,
        )  # fmt: skip
        saves += [place] if place.saved_ms > 0 else []
    saves.sort(key=lambda place: -place.saved_ms)
    lost_ms = sum(place.saved_ms for place in saves)
    share = lost_ms / phases.recurring_ms if lost_ms else 0.0
    all_ms = sum(call.ms for call in made)
    table = Table.of(
        [place.call for place in saves if place.call],
        ("your line", lambda call: call.at or ""),
        ("call", lambda call: call.name),
        ("calls", lambda call: count(call.count)),
        ("mean time", lambda call: ms(call.each_ms)),
        ("time from one to the next", lambda call: ms(phases.recurring_ms / call.count)),
        ("enough for a failure each hour", lambda call: ms(_best_ms(call, limits))),
    )
    return judged(
        Measure.share("share of what recurs that fewer saves spare", share, limits.share),
        healthy=f"Saving takes {duration(all_ms)} ({percent(all_ms / phases.total_ms)} of the run)",
        finding=saves[0].says if saves else "",
        details=[table],
        remedies=(remedy for place in saves[:SHOWN] for remedy in place.remedies),
        run_effects=(place.effect for place in saves),
        concern=Concern.RUN,
        about=RunCall.SAVE,
        alike=len(saves) - 1,
    )


def _best_ms(call: MadeCall, limits: Limits) -> float:
    """Return Young's interval, the distance at which saving costs least."""
    return sqrt(2.0 * call.each_ms * limits.failure_hours * 3.6e6)
