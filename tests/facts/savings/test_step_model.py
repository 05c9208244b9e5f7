"""What the step model promises, for every step and every set of effects."""

from tests.facts.kit import *

EXACT = 1e-6
"""Milliseconds; steps are below a second."""

times = st.floats(0, 100, allow_subnormal=False).map(lambda value: round(value, 3))
PATHS = ("Root", "Root::Prefetch::Map", "Root::Prefetch::Map::Range", "Root::Prefetch::Batch")
cores = st.floats(0.1, 64)
segments = st.lists(
    st.builds(
        PipelineSegment, st.dictionaries(st.sampled_from(PATHS), times, min_size=1, max_size=3), st.booleans()
    ),
    max_size=3,
).map(tuple)

models = st.builds(
    StepModel,
    device=st.sampled_from(DeviceKind),
    exposed=st.fixed_dictionaries({str(part): times for part in PARTS}),
    segments=segments,
    host_work=times,
    cores=st.none() | st.builds(Cores, usable=cores, busy=cores, others=cores),
    input_ms=times,
    floors=st.dictionaries(st.sampled_from(["conv", "bn"]), times),
)


def subjects(stage: Stage) -> st.SearchStrategy[str]:
    return st.sampled_from(("", *PATHS) if stage is Stage.INPUT else ("", "conv", "bn"))


@st.composite
def effects(draw: st.DrawFn) -> Effect:
    """An effect as rules state them: it never makes a stage slower."""
    stage = draw(st.sampled_from(list(Stage)))
    subject = draw(subjects(stage))
    return Effect(
        stage,
        scales=draw(st.floats(0, 1)),
        subject=subject,
        of=ms(draw(times)) if subject and stage is not Stage.INPUT else None,
        overlaps=stage is Stage.INPUT and not subject and draw(st.booleans()),
        spreads=stage is Stage.INPUT and bool(subject) and draw(st.booleans()),
        narrows=stage is Stage.DEVICE and bool(subject) and draw(st.booleans()),
    )


sets = st.lists(effects(), min_size=1, max_size=4)


def model(**parts: float) -> StepModel:
    """A GPU's step without a pipeline that is known."""
    return StepModel(device=DeviceKind.GPU, exposed={str(part): parts.get(str(part), 0.0) for part in PARTS})


@given(models, effects())
def test_an_effect_saves_from_nothing_to_what_its_stage_has_exposed(any_step: StepModel, effect: Effect) -> None:
    assert any_step.predict([]) == any_step.step_ms
    nothing = [Effect(stage) for stage in Stage]
    assert any_step.predict(nothing) == pytest.approx(any_step.step_ms, abs=EXACT)
    assert -EXACT <= any_step.saving([effect]) <= any_step.exposed[effect.stage] + EXACT


@given(models, sets, st.floats(0, 1))
def test_a_set_saves_no_less_than_its_best_member_or_a_weaker_set(
    any_step: StepModel, some: Any, factor: float
) -> None:
    best = max(any_step.saving([one]) for one in some)
    assert any_step.saving(some) >= best - EXACT
    first, *others = some
    stronger = replace(first, scales=first.scales * factor)
    assert any_step.predict([stronger, *others]) <= any_step.predict(some) + EXACT
    parts = any_step.predict_parts(some)
    assert sum(parts.values()) == pytest.approx(any_step.predict(some), abs=EXACT)
    assert min(parts.values()) >= 0.0


@given(models, sets.flatmap(lambda some: st.tuples(st.just(some), st.permutations(some))))
def test_the_order_of_effects_is_nothing(any_step: StepModel, orders: tuple[list[Effect], list[Effect]]) -> None:
    one, other = map(any_step.predict, orders)
    assert one == pytest.approx(other, abs=EXACT)


@given(models, sets)
def test_no_step_is_shorter_than_the_rest_of_its_longest_stage(any_step: StepModel, some: list[Effect]) -> None:
    touched = {effect.stage for effect in some}
    left = [time for stage, time in any_step.exposed.items() if stage not in touched]
    untouched = sum(time for time in left)
    if Stage.INPUT not in touched:  # input alone may hide behind the rest, or the rest behind it
        untouched -= any_step.exposed[Stage.INPUT]
    assert any_step.predict(some) >= max([0.0, untouched, *left]) - EXACT


@given(models, st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_two_effects_on_one_subject_do_not_save_the_same_ms_twice(
    any_step: StepModel, share: float, one: float, other: float
) -> None:
    of = share * any_step.exposed[Stage.DEVICE]
    both = [Effect(Stage.DEVICE, scales, "conv", ms(of)) for scales in (one, other)]
    assert any_step.saving(both) <= of + EXACT
    assert any_step.saving(both) <= sum(any_step.saving([e]) for e in both) + EXACT


@given(models, cores, st.floats(0.01, 1), sets)
def test_work_that_moves_or_spreads_keeps_the_cores_busy(
    any_step: StepModel, usable: float, share: float, some: Any
) -> None:
    on_cpu = replace(any_step, device=DeviceKind.CPU, cores=Cores(usable, usable * share))
    moved = [e for e in some if e.overlaps or e.spreads]
    busy = share * on_cpu.step_ms
    assert on_cpu.predict([Effect(Stage.INPUT, overlaps=True), *moved]) >= busy - EXACT


@given(models, sets)
def test_a_run_that_has_no_core_free_gains_nothing_from_threads(any_step: StepModel, some: list[Effect]) -> None:
    full = replace(any_step, device=DeviceKind.CPU, cores=Cores(2.0, 2.0))
    moved = [e for e in some if e.overlaps or e.spreads]
    unscaled = [replace(e, scales=1.0) if e.overlaps else e for e in moved]
    assert full.saving(unscaled) <= EXACT


@given(models, sets, st.floats(-1, 1))
def test_a_host_a_little_longer_changes_little(any_step: StepModel, some: list[Effect], change: float) -> None:
    """Also where it comes to work longer than the device, and begins to limit the step."""
    exposed = {**any_step.exposed, Stage.HOST: any_step.exposed[Stage.DEVICE]}
    before = replace(any_step, device=DeviceKind.GPU, segments=(), exposed=exposed)
    host = max(0.0, before.exposed[Stage.HOST] + change)
    after = replace(before, exposed={**before.exposed, Stage.HOST: host})
    assert abs(after.predict(some) - before.predict(some)) <= 2 * abs(change) + EXACT


@given(models, st.floats(1e-3, 1), times, times)
def test_no_operation_beats_its_roofline(any_step: StepModel, scales: float, of: float, floor: float) -> None:
    bounded = replace(any_step, floors={"conv": floor})
    effect = Effect(Stage.DEVICE, scales, "conv", ms(of))
    assert bounded.saving([effect]) <= max(0.0, of - floor) + EXACT
    assert bounded.saving([effect, effect]) <= max(0.0, of - floor) + EXACT


# Stages that hide each other


def fed(model: StepModel, *beside: dict[str, float], serial: dict[str, float] | None = None) -> StepModel:
    """A model with segments beside the step, or one that the trainer waits for."""
    made = [PipelineSegment(ms, overlapped=True) for ms in beside]
    return replace(model, segments=(*made, *([PipelineSegment(serial, overlapped=False)] if serial else [])))


MAP = "Root::Map"
BESIDE = fed(model(input=40, device=10), {MAP: 50.0})
SERIAL = fed(model(input=40, device=20), serial={MAP: 40.0})
SLOWEST = fed(model(input=40, device=10), {"a": 30.0, "b": 15.0}, {"c": 20.0})
WORKERS = replace(model(input=73.4, device=2.4), device=DeviceKind.CPU, cores=Cores(2.0, 2.0), input_ms=73.4)
HALVED, TENTH, AHEAD = Effect(Stage.DEVICE, 0.5), Effect(Stage.DEVICE, 0.1), Effect(Stage.INPUT, overlaps=True)
CONV, BN = Effect(Stage.DEVICE, 0.5, "conv", ms(8.0)), Effect(Stage.DEVICE, 0.5, "bn", ms(4.0))
SHARED = fed(model(input=40, device=60), serial={MAP: 40.0})
ON_TWO_CORES = replace(SHARED, device=DeviceKind.CPU, cores=Cores(2.0, 1.6), input_ms=40.0)
PARALLEL = Effect(Stage.INPUT, 0.5, MAP, spreads=True)
FLOORED, A_HALVED = replace(model(device=10.0), floors={"a": 8.0}), Effect(Stage.DEVICE, 0.5, "a", ms(10.0))
BOUNDED = replace(model(device=20.0), device=DeviceKind.CPU, floors={"op": 4.0})
GONE = Effect(Stage.DEVICE, 0.0, "op", ms(10.0))

test_stages_hide_each_other_or_add_up = answers(
    lambda run, *changes: run.predict(changes),
    # input made beside the step hides the compute
    (BESIDE, HALVED, 50.0),
    (BESIDE, Effect(Stage.INPUT, 0.1, MAP), 10.0),
    (BESIDE, Effect(Stage.INPUT, 0.1, MAP), HALVED, 5.0),
    # made while the trainer waits it adds to the compute
    (SERIAL, HALVED, 50.0),
    (SERIAL, AHEAD, 40.0),
    (SERIAL, Effect(Stage.INPUT, 0.25, MAP), 30.0),
    # a pipeline that is not known is work of unknown origin
    (model(input=40, device=20), Effect(Stage.INPUT, 0.0), 20.0),
    (model(input=40, device=20), Effect(Stage.INPUT, 0.0, MAP), 60.0),
    # the slowest segment takes the step: its stages were measured at 45 ms, and the pace says 50
    (SLOWEST, Effect(Stage.INPUT, 0.5, "a"), 50 * (15 + 15) / 45),
    (SLOWEST, Effect(Stage.INPUT, 0.0, "a"), Effect(Stage.INPUT, 0.0, "b"), 20.0),
    # a pipeline that keeps up is at least as fast as the step
    (fed(model(device=50), {"a": 80.0}), HALVED, 50.0),
    (fed(model(device=50), {"a": 30.0}), HALVED, 30.0),
    # launching that the device hides stays; a host that leaves it idle limits the step; a CPU hides nothing
    (replace(model(host=2, device=10), host_work=9), TENTH, 9.0),
    (replace(model(host=9, device=1), host_work=9), TENTH, 10.0),
    (replace(model(host=2, device=10), device=DeviceKind.CPU, host_work=9), TENTH, 3.0),
    # what is unknown stays
    (model(unknown=7, input=1, device=2, between=3), *(Effect(stage, 0.0) for stage in Stage), 7.0),
    # time between steps saves although the trainer waits a little for its input
    (fed(model(input=3.0, host=2.0, device=6.3, between=16.5), {"a": 9.0}), Effect(Stage.BETWEEN, 0.0), 12.0),
    # Two processes that make the batches use both cores; the step's own work uses them 2.4 of 76 ms.
    (WORKERS, Effect(Stage.INPUT, 0.0), 2.4),
    # effects on several parts of a stage add up, and those on one multiply
    (model(device=20), CONV, BN, 14.0),
    (model(device=20), CONV, CONV, 14.0),
    # Two cores: 40 ms of input on one of them, then 60 ms of compute on both. Threads share what that leaves.
    *((ON_TWO_CORES, *changes, 80.0) for changes in ([AHEAD], [PARALLEL], [AHEAD, PARALLEL])),
    (ON_TWO_CORES, AHEAD, PARALLEL, HALVED, 50.0),
    # memory limits narrower tensors less
    (FLOORED, A_HALVED, 8.0),
    (FLOORED, replace(A_HALVED, narrows=True), 5.0),
    # An operation goes below its floor only where it is not run at all.
    (BOUNDED, GONE, 10.0),
    (BOUNDED, replace(GONE, scales=0.1), 14.0),
    # Their product is too small for a float, and nothing is removed.
    (BOUNDED, *(replace(GONE, scales=scales) for scales in (6e-56, 3e-290)), 14.0),
)


def test_where_the_host_begins_to_limit_the_step_nothing_jumps() -> None:
    just, over = (replace(model(host=host, device=10), host_work=12).predict([HALVED]) for host in (9.999, 10.001))
    assert just == pytest.approx(over, abs=0.005)


@cases((50.0, True), (45.1, True), (44.9, False))
def test_stages_that_explain_too_little_of_a_wait_make_savings_ceilings(made: float, *, trusted: bool) -> None:
    found = fed(model(input=40, device=10), {"a": made})
    assert TRUSTED_RESIDUAL == 0.1
    assert found.residual == pytest.approx(50 - made)
    assert found.trusted is trusted
    assert fed(model(input=0.9, device=50), {"a": 1.0}).residual == 0  # a trainer that does not wait


# A wait that hands a batch over, is nearly as slow as the step, is a plain wait, is most of the step.
@cases((3.0, 1.0, 40.0), (3.0, 60.0, 37.0), (8.0, 1.0, 40.0), (55.0, 1.0, 0.0))
def test_a_wait_hides_changes_only_as_far_as_its_input_takes_time(wait: float, made: float, saved: float) -> None:
    """A batch that lies ready takes a moment, too: then the input does not hide what the compute gains."""
    run = fed(model(input=wait, device=100 - wait), {"a": made})
    assert run.saving([Effect(Stage.DEVICE, 0.0, "conv", ms(40.0))]) == pytest.approx(saved)


@given(times, times, times, times)
def test_a_change_to_the_rest_saves_all_that_the_inputs_own_time_does_not_hide(
    wait: float, made: float, device: float, between: float
) -> None:
    """So a change to the largest part always saves, unless the input takes as long as what remains."""
    rest, hides = device + between, max(made, wait)
    saved = fed(model(input=wait, device=device, between=between), {"a": made}).saving([Effect(Stage.BETWEEN, 0.0)])
    if hides < rest:
        assert saved >= min(between, rest - hides) - EXACT
    assert saved <= between + EXACT


@given(times, times, times)
def test_less_input_work_saves_the_wait_whatever_sets_the_pace(wait: float, made: float, device: float) -> None:
    run = fed(model(input=wait, device=device), {"a": made})
    assert run.saving([Effect(Stage.INPUT, 0.0)]) == pytest.approx(wait, abs=EXACT)


@cases(
    (Cores(4.0, 1.0), False), *((one, True) for one in (Cores(4.0, 1.0, 2.0), Cores(4.0, 1.0, sampled=False), None))
)
def test_savings_that_need_cores_nobody_is_certain_of_are_ceilings(cores: Cores | None, *, guesses: bool) -> None:
    on_cpu = replace(model(input=1, device=1), device=DeviceKind.CPU, cores=cores)
    assert on_cpu.guesses_cores([AHEAD]) is guesses
    assert on_cpu.guesses_cores([Effect(Stage.INPUT, 0.5, "a", spreads=True)]) is guesses
    assert not on_cpu.guesses_cores([Effect(Stage.INPUT, 0.5, "a")])
    assert not replace(on_cpu, device=DeviceKind.GPU).guesses_cores([AHEAD])


@cases(
    (Effect(Stage.INPUT, 0.0, "a"), DeviceKind.CPU, True),
    (Effect(Stage.INPUT, 0.5, "a", spreads=True), DeviceKind.CPU, False),
    (Effect(Stage.INPUT, overlaps=True), DeviceKind.CPU, False),
    (Effect(Stage.DEVICE, 0.5), DeviceKind.CPU, False),
    (Effect(Stage.INPUT, 0.0, "a"), DeviceKind.GPU, False),
)
def test_work_that_is_gone_leaves_a_cpus_cores_free(effect: Effect, device: DeviceKind, *, frees: bool) -> None:
    run = replace(model(input=6.0, device=4.0), device=device)
    assert run.frees_cores([effect]) is frees
    assert not run.frees_cores([effect, Effect(Stage.DEVICE, 0.9)])  # says what that gives


# Elements that tracing makes slow


@cases(
    (7000, 33.0, True),
    (3500, 33.0, False),  # without it the input still takes longer than the rest
    (1000, 44.0, False),  # little of it is the profiler's
    (0, 33.0, False),
)
def test_an_input_of_many_elements_may_keep_up_untraced(elements: float, device: float, *, doubted: bool) -> None:
    known = fed(model(input=45.0 - device, device=device), {"Root::Prefetch::Batch": 45.0})
    run = replace(known, elements=elements)
    assert run.doubts_input is doubted
    cost = TracingCost.of(run.exposed, {}, 1.2)
    assert replace(run, tracing=cost, slowdown=1.2).doubts_input is doubted
    assert not replace(run, tracing=cost, slowdown=1.6).doubts_input
    assert not replace(run, segments=()).doubts_input  # without a pipeline


def test_the_model_takes_the_pipelines_segments_and_the_launching_work() -> None:
    prefetch = wait(0, 50), iterator("Root", 0, 50, 1), iterator("Root::Prefetch", 0, 50, 2, 1)
    host = [
        markers(1, 100),
        line("tf_Compute/1", executor(0, 90), ("c:Conv2D", 60, 88)),
        line("tf_data_iterator_get_next/1", *prefetch),
        line("tf_data_iterator_resource/1", iterator("Root::Prefetch::Map", 0, 40, 3, 2)),
    ]
    gpu = v100(line("Stream #1(Compute)", ("volta_sgemm", 60, 90)))
    found = chart(trace(host, gpus=[gpu])).fact(StepModel)
    figures = found.step_ms, max(segment.ms for segment in found.segments), found.elements, found.host_work
    assert figures == pytest.approx((100, 40, 1, 28))
    assert (found.device, found.busy_share, found.cores) == (DeviceKind.GPU, None, None)


@cases((200.0, 0.5), (800.0, 1.0))
def test_the_share_of_the_cores_that_the_run_keeps_busy(used: float, share: float) -> None:
    beside = recording(samples=[{"unix_ns": 1, "host": {"run_cpu_pct": used}}], manifest=manifest())
    assert chart(trace([markers(2, 10)]), beside).fact(StepModel).busy_share == share


input_effects = st.builds(Effect, stage=st.just(Stage.INPUT), scales=st.floats(0, 1), subject=subjects(Stage.INPUT))


@given(models, st.lists(input_effects, min_size=1, max_size=3))
def test_an_upper_bound_is_no_smaller_than_what_is_expected(any_model: StepModel, expected: list[Effect]) -> None:
    bounds = [replace(effect, bound=Bound.AT_MOST) for effect in expected]
    saved = any_model.saving(bounds)
    assert saved >= any_model.saving(expected) - EXACT
    assert saved <= any_model.step_ms + EXACT


@cases((1.9, DeviceKind.CPU, 8.0), (1.0, DeviceKind.CPU, 6.0), (1.9, DeviceKind.GPU, 6.0))
def test_an_upper_bound_counts_cores_that_the_input_frees(busy: float, device: DeviceKind, saved: float) -> None:
    """Half of the 4 ms beside which the input works."""
    crowded = replace(model(input=6.0, device=4.0), device=device, cores=Cores(2.0, busy), input_ms=15.0)
    bound = Effect(Stage.INPUT, 0.0, bound=Bound.AT_MOST)
    assert crowded.saving([bound]) == pytest.approx(saved)
    uncounted = device is DeviceKind.CPU and saved == pytest.approx(6.0)
    assert crowded.frees_cores([bound]) == uncounted  # the report says so then


def left(product: float, times: int) -> float:
    """Changes to the input each count the cores they leave, beside a profiler that may have slowed the rest."""
    cost = TracingCost.of(model(input=32.0, device=64.0).exposed, {}, 1.6)
    on_two: dict[str, Any] = {"device": DeviceKind.CPU, "cores": Cores(2.0, 1.9), "input_ms": 60.0, "tracing": cost}
    bound = Effect(Stage.INPUT, 0.0, bound=Bound.AT_MOST)
    change = bound, Effect(Stage.DEVICE, 0.5, of=ms(40.0), bound=Bound.AT_MOST)
    faster = Effect(Stage.DEVICE, product, "conv", ms(32.0))  # 20 ms untraced
    return replace(model(input=20.0, device=40.0), **on_two).predict([*times * change, faster])


test_changes_that_leave_the_cores_leave_half_of_the_work_that_stays = answers(
    left, (1.0, 1, 20.0), (1.0, 2, 20.0), (0.25, 1, 12.5), (0.25, 2, 12.5)
)
