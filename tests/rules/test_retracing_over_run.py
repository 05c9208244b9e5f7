"""retracing over the run: functions that are made or traced again and again, priced as time of the run."""

from tests.rules.kit import *
from tests.rules.test_retracing import example

FIT, COMPILE = script(33), script(31)
STEP = TracedDefinition(
    name="step", at=FIT, tracings=10, ms=5_500.0, first_ms=1_000.0, made=10, within=RunCall.EPOCH,
    starts_s=tuple(range(8, 28, 2)),
)  # fmt: skip
OWN = replace(STEP, at=script(50), within=RunCall.SCRIPT, tracings=100, made=100)
COMPILED = MadeCall(call=RunCall.COMPILE, name="Model.compile", at=COMPILE, count=10, ms=50.0, looped=True)
FITTED = MadeCall(call=RunCall.FIT, name="Model.fit", at=FIT, count=10, ms=20_000.0, looped=True, models=1)
PHASES = RunPhases(total_ms=30_000.0, times={Phase.TRACING: 5_500.0, Phase.IMPORTS: 24_500.0}, once_ms=10_000.0)


def check(
    *functions: TracedDefinition, calls: tuple[MadeCall, ...] = (COMPILED, FITTED), phases: RunPhases = PHASES,
    window: Retracing | None = None,
) -> Verdict:  # fmt: skip
    step = Breakdown.of(device=5.0, host=5.0) if window else None
    untraced = Unavailable("no trace")
    return example(window or untraced, step, *functions, phases=phases, calls=calls)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a model that is compiled in each epoch is found with its line"] = check(STEP)
    building = RunLine(phase=Phase.BUILDING, at=COMPILE, ms=400.0, samples=6)
    told["compile's own time"] = check(
        STEP, phases=replace(PHASES, lines=(building, replace(building, at=FIT, ms=900.0)))
    )
    changes: dict[str, dict[str, Any]] = {
        "a model and its fine-tuned copy": {"tracings": 2, "made": 2},
        "three functions": {"tracings": 3, "made": 3},
        "one function is traced five times": {"tracings": 5, "made": 1},
        "one function is traced six times, for shapes or values that change": {"tracings": 6, "made": 1},
        "5 % of what recurs": {"ms": 1_000.0 + 1_000.0},
        "less than 5 % of what recurs": {"ms": 1_000.0 + 999.0},
        "trap: a slow first epoch, until all lengths were seen": {"starts_s": (8.0, 9.0, 18.9)},
        "tracing goes on in the later half of the run": {"starts_s": (8.0, 9.0, 19.0)},
        "the end of the process is no part of the run's later half": {"starts_s": (8.0, 9.0, 17.0)},
        "one function is traced twice": {
            "tracings": 2, "made": 1, "ms": 9_000.0, "first_ms": 8_000.0, "starts_s": (8.0, 9.0)
        },
    }  # fmt: skip
    for name, change in changes.items():
        ends = {**PHASES.times, Phase.END: 6_000.0} if "the end of" in name else PHASES.times
        told[name] = check(replace(STEP, **change), phases=replace(PHASES, times=ends))
    for models in (10, 3, 2):
        told[f"a function for each of {models} models: several are left to tuning-loop"] = check(
            STEP, calls=(COMPILED, replace(FITTED, models=models))
        )
    told["without a call of compile the line of fit is named"] = check(STEP, calls=(FITTED,))
    told["what new shapes cost is an upper bound"] = check(replace(STEP, made=1, tracings=40))
    test_step = replace(STEP, name="test_step", at=script(34), ms=2_000.0, first_ms=200.0)
    told["several functions are one finding"] = check(test_step, STEP)
    part = replace(PHASES, whole=False, missing="only its window was traced")
    told["a run that was not recorded as a whole"] = check(STEP, phases=part)


@golden_cases
def test_own_functions(told: Cases) -> None:
    told["a function that a loop makes is to be made once"] = check(OWN)
    line = Location("tune.py", 61)
    numbers = tuple(ChangingNumber(name, ("0.1", "0.2"), line) for name in ("lr", "clip", "noise"))
    told["Python numbers that change, and who assigns them"] = check(replace(OWN, numbers=numbers, made=1))
    defined = Location("gan.py", 46)
    epoch = (ChangingNumber("epoch", ("0", "1")),)
    told[
        "a function that is made again is named where it is defined: each is traced once, whatever it is given"
    ] = check(replace(OWN, defined=defined, redefined=True, numbers=epoch))
    told["TensorFlow's own function for each export"] = check(replace(OWN, name="_traced_save"))
    told["tf.function(step) in a loop is named where it is called"] = check(replace(OWN, defined=defined))
    kind = ChangingNumber("kind", ("'a'", "'b'"), line)
    told["texts that change get no tensor"] = check(replace(OWN, numbers=(kind,), made=1))
    both = kind, ChangingNumber("lr", ("0.1", "0.2"))
    told["a text and a number that change"] = check(replace(OWN, numbers=both, made=1))


@golden_cases
def test_window(told: Cases) -> None:
    for name in ("step", "other"):
        window = Retracing((Retraced(name, 20, 5, 9, ("1", "2")),), host_ms=2.0, between_ms=1.0)
        told[f"the window traces {name}: step has a part in the typical step"] = check(STEP, window=window)
    window = Retracing((Retraced("step", 20, 19, 30, ("1", "2")),), host_ms=2.0)
    told["the changing argument is the window's"] = check(replace(STEP, made=1, tracings=40), window=window)
