"""What a comparison says of two runs and of their phases, and what can be compared."""

from tests.compare.kit import *
from tests.report.diagnoses import saving as run_saving
from tfdoctor.compare.compare import compare
from tfdoctor.compare.differences import carried, run_change
from tfdoctor.compare.reports import load
from tfdoctor.report import comparison as words
from tfdoctor.stored.files import of_text

TOLD = Told()


def compared(before: Diagnosis, after: Diagnosis, most: float | None = None) -> RunComparison:
    return compare([before], [after], most_regression=most)


def told(result: RunComparison) -> dict[str, object]:
    """Return all that is said of two runs, but for the versions of tfdoctor."""
    sides = {side: dict(stated(getattr(result, side))) for side in ("before", "after")}
    known = {name: one for name, one in stated(result) if name not in {"version", *sides}}
    return {"headline": words.headline(result)} | sides | known | {"notes": [*words.notes(result)]}


def gated(before: Diagnosis, after: Diagnosis, *limits: float) -> dict[str, object]:
    """Return what is said of two runs, and what a gate decides that allows so much."""
    gates = {f"gate of {most}": compared(before, after, most).gate for most in limits}
    return told(compared(before, after)) | gates


def part(name: str, before: Diagnosis, after: Diagnosis) -> object:
    return getattr(compared(before, after), name)


def stepped(before: Diagnosis, after: Diagnosis) -> ChangeOfStep:
    step = compared(before, after).step
    assert step
    return step


def plain(seed: int = 0, jitter: float = 0.01, *, step_ms: float = 20.0, steps: int = 60, **more: Any) -> Diagnosis:
    """A report of a made-up run; `more` differs in its conditions."""
    return report(series(seed, jitter, step_ms=step_ms, steps=steps), conditions=replace(MACHINE, **more))


def of(*results: Result, seed: int = 0) -> Diagnosis:
    return report(series(seed), results=results)


def untraced(made: Diagnosis, untraced_ms: float) -> Diagnosis:
    """A report that leaves the profiler's cost out."""
    parts = {"device": untraced_ms}
    return replace(made, steps=replace(made.steps, untraced_ms=untraced_ms, untraced_breakdown_ms=parts))


def checkpoints(seed: int, every: int, cost_ms: float, first: int = 0) -> Diagnosis:
    times = np.array(series(seed))
    times[first::every] += cost_ms
    return report(list(times))


def loaded(times: list[float], run: float, between_ms: float) -> Diagnosis:
    """Return a report of steps that mostly wait between the calls, while other programs use all cores."""
    busy = replace(MACHINE, cores_run=run, cores_other=2.0 - run)
    share = between_ms / float(np.median(times))
    return report(times, {"host": 1 - share, "between": share}, conditions=busy)


def with_burst() -> Diagnosis:
    times = np.array(series(0, 0.03, step_ms=5.2, steps=40))
    times[12:19] *= 3.0
    return loaded(list(times), 0.15, 2.3)


def with_waits(device_ms: float) -> Diagnosis:
    """Return a report of even work on the device, and of two bursts of input waits."""
    wait = np.zeros(60)
    wait[5:13] = wait[40:49] = 80.0
    made = report([device_ms + float(time) for time in wait])
    return replace(made, steps=replace(made.steps, breakdown_ms={"device": device_ms, "input": 1.0}))


AT_WORK = loaded(series(1, 0.03, step_ms=23.3, steps=40), 0.1, 20.0)
BUSY = report([2 * time for time in series(1)], conditions=replace(MACHINE, cores_run=0.5, cores_other=1.7))
WAITS = {"input": 0.6, "device": 0.4}
VARYING = report([60.0, 150.0] * 8, {"input": 0.8, "device": 0.2})
EVEN = report([19.0, 20.0] * 8, {"input": 0.05, "device": 0.95})
STEPS = plain().steps
FEW_STEADY = replace(
    plain(), steps=replace(STEPS, rows=tuple(replace(row, steady=row.number < 3) for row in STEPS.rows))
)
QUIET: dict[str, Any] = {"cores_run": 1.2, "cores_other": 0.0}
SPARE: dict[str, Any] = {"cores_usable": 16.0, "cores_run": 2.0, "cores_other": 2.0}
SLOW_CLOCK = plain(1, step_ms=26.4, gpu_mhz=1500.0)
TRACING = plain(1, step_ms=18.0, untraced_ms=17.9)

TOLD[gated] = {
    "a run with itself": (plain(), plain(), 0.001),
    "two runs alike": (plain(0, 0.03), plain(1, 0.03), 0.005),
    "a faster run, with its parts": (report(series(0), WAITS), report(series(1, step_ms=8.0), {"device": 1.0})),
    # The gate fails on the lower end of the interval, and says where the steps cannot decide:
    "a slower run": (plain(), plain(1, step_ms=22.0), 0.099, 0.05),
    # As in a run of the tests: 5.2 → 23.3 ms, and the other worker took the cores for a while.
    "a slower run beside other programs": (with_burst(), AT_WORK, 0.1),
    "steps that differ too much": (plain(0, 0.8), plain(1, 0.8), 0.05),
    "a checkpoint after every fifth step": (plain(2), checkpoints(3, 5, 40.0), 0.05),
    "without that checkpoint: 8 ms of the mean step": (checkpoints(3, 5, 40.0), plain(2)),
    "long steps that are not certain": (plain(), checkpoints(1, 5, 40.0), 0.05),
    "few long steps change no verdict": (plain(), checkpoints(1, 60, 600.0, first=20)),
    "other programs make the change unknown": (plain(), BUSY),
    # The device is a quarter faster in every step, and a burst of input waits hides it in the whole.
    "a burst of waits": (with_waits(106.0), with_waits(77.1)),
    "no steps": (plain(), report([])),
    "five steps": (plain(steps=5), plain()),
    "quiet machines": (plain(**QUIET), plain(1, **QUIET)),
    "other programs widen the side that they slow": (plain(**QUIET), plain(1, cores_run=1.2, cores_other=0.5)),
    "other programs have cores to spare": (plain(**SPARE), plain(1, **SPARE)),
    "lower clocks widen the side that they slow": (plain(gpu_mhz=1980.0), SLOW_CLOCK),
    "a step that sleeps does not wait for the cores": (plain(), loaded(series(1), 0.02, 10.0)),
    "a step at work waits for them": (plain(), loaded(series(1), 1.0, 10.0)),
    # Tracing slowed one run by half and the other less, or one by a tenth and the other hardly:
    "one report leaves tracing out, the other cannot": (untraced(plain(), 12.0), plain(1)),
    "one report leaves tracing out, the other need not": (untraced(plain(), 18.0), TRACING),
    "both reports leave tracing out": (untraced(plain(), 10.0), untraced(plain(), 10.0)),
    "a step hardly shorter without tracing": (plain(untraced_ms=19.5), plain(untraced_ms=19.5)),
    # Each step before is longer than any after, however much the steps before differ among themselves.
    "a step that clearly changed has a part that did": (VARYING, EVEN),
    "too few steady steps say nothing of the parts": (FEW_STEADY, plain(1, step_ms=8.0)),
}


@TOLD
def a_side_states_its_step_without_tracing_where_that_is_clearly_shorter() -> object:
    traced = [plain(seed) for seed in range(3)]
    return told(compare([plain(seed, untraced_ms=15.0 + seed) for seed in range(3)], traced))


@TOLD
def shares_are_compared_where_times_cannot_be() -> object:
    before = report(series(0), {"input": 0.5, "device": 0.5})
    after = report(series(1, step_ms=200.0), {"input": 0.1, "device": 0.9})
    return told(compare([before], [after], in_ms=False))


@TOLD
def the_run_in_the_middle_stands_for_its_side() -> object:
    runs = [plain(seed, step_ms=ms) for seed, ms in enumerate((30.0, 20.0, 25.0))]
    runs = [replace(one, subject=replace(one.subject, title=str(at))) for at, one in enumerate(runs)]
    return told(compare(runs, runs))


@settings(max_examples=20)
@given(st.floats(0.0, 0.5), st.floats(0.0, 0.5), st.integers(0, 30))
def test_a_gate_that_allows_more_never_fails_where_a_strict_one_passes(one: float, other: float, seed: int) -> None:
    before, after = plain(seed), plain(seed + 1, step_ms=23.0)
    gates = [compared(before, after, most).gate for most in sorted((one, other))]
    strict, lax = (gate.failed for gate in gates if gate)
    assert strict or not lax


# Which runs are alike, and what became of findings


def run_of(**changes: Any) -> Diagnosis:
    return report(series(1), subject=replace(SUBJECT, **changes))


TOLD[partial(part, "mismatches", plain())] = {
    "another host": run_of(hosts=("other",)),
    "another command": run_of(command=("python", "x.py")),
    "another version": run_of(framework={"tensorflow": "2.18"}),
    "another batch size": plain(1, batch_size=64),
    "another CPU": plain(1, cpu_model="Xeon"),
    "unknown is not another": plain(1, batch_size=None, cpu_model=""),
}


def in_script(script: str, helper: str, seed: int) -> Diagnosis:
    results = finding("slow", script, 3.0), finding("a", helper, 3.0)
    return report(series(seed), results=results, subject=replace(SUBJECT, command=("python", script)))


def renamed(before_text: str, after_text: str) -> tuple[Diagnosis, Diagnosis]:
    """What a helper module does, in which only the module's name changed; and the text of the line."""
    before = of(finding("a", "helpers.py", 3.0, line=7))
    after = of(finding("a", "lib/data.py", 3.0, line=9), seed=1)
    if not before_text:
        return before, after
    lines = {"helpers.py:7": before_text}, {"lib/data.py:9": after_text}
    return replace(before, lines=lines[0]), replace(after, lines=lines[1])


def matched() -> tuple[Diagnosis, Diagnosis]:
    before = [finding(name, "a.py", 3.0) for name in ("gone", "moved", "worse", "elsewhere")]
    after = [finding("moved", "a.py", 3.1, line=90), finding("worse", "a.py", 9.0), with_outcome(before[0])]
    after += [finding("better", "a.py", 3.0), finding("elsewhere", "b.py", 3.0)]
    return of(*before, finding("better", "a.py", 9.0)), of(*after, seed=1)


def caused(*, alone: bool) -> tuple[Diagnosis, Diagnosis]:
    """A cause and its symptom, which stands alone in one of the runs or is gone as well."""
    cause, symptom = finding("python-input", "a.py", 3.0), finding("input-bound", "a.py", 4.0)
    ceiling = Relation(Relationship.CEILING, "input-bound", ("python-input",), "input")
    both = replace(of(cause, symptom), order=Order(relations=(ceiling,)))
    return both, of(with_outcome(cause), symptom if alone else with_outcome(symptom), seed=1)


def of_run(time: float, share: float) -> Diagnosis:
    saving = replace(run_saving(time / 1000, Recurrence.ONCE), share=share, rated_share=share)
    return of(replace(finding("slow-prediction", "embed.py", 0.0), saving=None, run=saving))


TRACED = finding("input-bound", "train.py", 10.0)
SAVES = of(replace(TRACED, saving=replace(TRACED.saving, ms_per_step=5.0))) if TRACED.saving else of()
TAKES = of(replace(TRACED, saving=None, takes=Takes(9.0, 0.45)), seed=1)
UNCHECKED = {
    "not applicable": of(with_outcome(TRACED, NotApplicable(reason="no steps")), seed=1),
    "errored": of(with_outcome(TRACED, Errored(error="KeyError", traceback="")), seed=1),
    "unknown": of(seed=1),
}

TOLD[partial(part, "findings")] = {
    "findings are matched by rule and file": matched(),
    **{f"{why} after: not gone": (of(TRACED), one) for why, one in UNCHECKED.items()},
    **{f"{why} before: not new": (one, of(TRACED)) for why, one in UNCHECKED.items()},
    "a symptom is shown by its cause": caused(alone=False),
    "a symptom stands alone in a run": caused(alone=True),
    # One report left the profiler's cost out of step and saving, the other has no untraced steps:
    "savings are of the steps that are compared": (untraced(SAVES, 10.0), of(TRACED)),
    "savings are not compared with costs": (of(TRACED), TAKES),
    "a renamed script": (in_script("runs/train.py", "x.py", 0), in_script("train2.py", "y.py", 1)),
    "a renamed module: the same line": renamed("aa", "aa"),
    "a renamed module: another line": renamed("aa", "bb"),
    "a renamed module: no lines are known": renamed("", ""),
}


@cases((0.7, FindingState.SAME), (0.5, FindingState.BETTER), (0.9, FindingState.WORSE))
def test_a_finding_about_the_run_changes_with_its_share(share: float, state: FindingState) -> None:
    found = compared(of_run(70_000.0, 0.69), of_run(share * 1e5, share))
    (row,) = words.tables(found)[words.FINDINGS].rows
    assert (found.findings[0].state, row[3]) == (state, "saves 70 s of the run")


# Of steps that can show 100 %, an operation of half the time is as certain as one of twice the time.
LESS, MORE = (with_work(plain(0, 0.4), {"MatMul": ms}, {}) for ms in (2.0, 9.0))

TOLD[partial(part, "movers")] = {
    "what moved most comes first and noise is left out": (
        with_work(plain(), {"MatMul": 9.0, "Mul": 3.0, "Add": 0.1}, {"Map": 4.0}),
        with_work(plain(1), {"MatMul": 4.0, "Mul": 3.05, "Add": 0.2}, {"Map": 1.0}),
    ),
    "what became slower": (LESS, MORE),
    "what became faster by as much": (MORE, LESS),
}

# What the verdict, the interval and the parts say must agree


@settings(max_examples=25)
@given(
    st.integers(0, 20),
    st.floats(0.3, 4.0),
    st.floats(0.002, 0.8),
    st.floats(0.0, 1.0),
    st.sampled_from([0.0, 0.5, 1.9]),
)
def test_verdict_interval_parts_agree(seed: int, slower: float, jitter: float, share: float, other: float) -> None:
    busy = replace(MACHINE, cores_run=0.1, cores_other=other)
    before = report(series(seed, jitter), {"input": share, "device": 1.0 - share})
    parts = {"input": share / slower, "device": 1.0 - share / slower}
    after = report(series(seed + 1, jitter, step_ms=20 * slower), parts, conditions=busy)
    result = compared(before, after)
    step = result.step
    assert step is not None
    assert step.low <= step.change <= step.high
    excludes_zero = step.low > 0 or step.high < 0
    assert (step.direction in (Direction.FASTER, Direction.SLOWER)) == excludes_zero
    assert (step.doubt is not None) == (step.direction is Direction.UNKNOWN)
    if step.direction is Direction.NONE:
        assert step.least <= WIDEST
        changed = sum(part.after - part.before for part in result.parts if part.changed)
        whole = sum(part.after - part.before for part in result.parts)
        assert not changed or changed * whole < changed**2 / 2


@settings(max_examples=25)
@given(st.integers(0, 20), st.floats(1.03, 100.0), st.floats(0.01, 1.5), st.floats(1.0, 20.0))
def test_steps_that_do_not_overlap_are_a_change(seed: int, gap: float, jitter: float, burst: float) -> None:
    first, last = (np.array(series(at, jitter, steps=40)) for at in (seed, seed + 1))
    first[:15] *= burst
    last *= gap * first.max() / last.min()
    less, more = report(list(first)), report(list(last))
    assert stepped(less, more).direction is Direction.SLOWER
    assert stepped(more, less).direction is Direction.FASTER


@cases((1.0, 9.0, False), (1.0, 5.0, True), (0.0, 7.5, True), ids=["as much", "not", "less"])
def test_work_that_moves_to_another_part_is_no_change(wait: float, device: float, *, carries: bool) -> None:
    parts = (
        PartChange(part="input", before=5.0, after=wait, changed=True),
        PartChange(part="device", before=5.0, after=device, changed=device != 5.0),
    )
    assert bool(carried(parts)) is carries


# The phases of two whole runs beside each other


def whole(times: dict[Phase, float], **more: Any) -> Diagnosis:
    """A report of a run of ten epochs, known whole."""
    rows = tuple(PhaseRow(phase=phase, ms=time) for phase, time in times.items())
    account = RunAccount(total_ms=sum(times.values()), rows=rows, epochs=10, steps=60)
    return replace(plain(), run=replace(account, **more))


times = st.dictionaries(st.sampled_from(Phase), st.floats(0.0, 1e8))


@given(times, times)
def test_phases_sum_to_the_runs_without_our_own_work(before: dict[Phase, float], after: dict[Phase, float]) -> None:
    change = run_change(whole(before), whole(after))
    assert change
    assert sum(one.before_ms for one in change.phases) == pytest.approx(change.before_ms)
    assert sum(one.after_ms for one in change.phases) == pytest.approx(change.after_ms)
    shown = [one.phase for one in change.phases]
    assert shown == [one for one in Phase if one in {*before, *after} - {Phase.PROFILER}]


KNOWN, WINDOW, EARLY = (
    whole({Phase.STEPS: 1_000.0}, **one) for one in ({}, {"whole": False}, {"ended_early": True})
)
PREPARED, SOONER = (whole({Phase.PREPARING: ms, Phase.STEPS: 60_000.0}) for ms in (21_400.0, 1_400.0))


def later() -> tuple[Diagnosis, Diagnosis]:
    """A report with a phase of a later version."""
    content = contract(replace(plain(), run=whole({Phase.IMPORTS: 6_000.0, Phase.STEPS: 60_000.0}).run))
    content["run"]["phases"][0]["phase"] = "dreaming"
    return (of_text(json.dumps(content), PLACE),) * 2


def test_a_report_is_read_with_its_run() -> None:
    made = replace(diagnoses.full(), run=whole({Phase.IMPORTS: 6_000.0, Phase.STEPS: 60_000.0}).run)
    assert of_text(json.dumps(contract(made)), PLACE).run == made.run


PLACE = Path("report.json")

TOLD[run_change] = {
    "of the other run the step alone is known": (KNOWN, plain()),
    "of the other run a window is known": (WINDOW, KNOWN),
    "the same whole run": (KNOWN, KNOWN),
    "the run after was ended early": (KNOWN, EARLY),
    "the run before was ended early": (EARLY, KNOWN),
    "a phase of a later version is unnamed": later(),
}


@TOLD
def runs_are_not_compared_where_times_cannot_be() -> object:
    return compare([KNOWN], [KNOWN], in_ms=False).run


@TOLD
def phases_and_the_whole_run_are_a_table_with_differences() -> object:
    (title, grid), *_ = words.tables(compared(PREPARED, SOONER)).items()
    return {title: [" | ".join(row) for row in grid.rows]} | told(compared(PREPARED, SOONER))


@TOLD
def the_runs_have_another_number_of_epochs() -> object:
    return told(compared(PREPARED, whole({Phase.STEPS: 2.0}, epochs=20)))


# What can be compared, and how anything else is refused

REPORT = contract(report([]))
ONE = contract(report([1.0]))["steps"]
ROW = ONE["rows"][0]


def with_steps(**changes: Any) -> dict[str, Any]:
    return {"steps": ONE | changes}


def read(given: str | dict[str, Any]) -> Diagnosis:
    return of_text(given if isinstance(given, str) else json.dumps(REPORT | given), PLACE)


TOLD[read] = {
    "a page": "<!DOCTYPE html><html></html>",
    "nothing": "",
    "half a list": "[1, 2",
    "a deep list": "[" * 100_000,
    "a list": "[]",
    "another object": '{"schema": 1}',
    "a schema that is no number": {"schema": True},
    "a later schema": {"schema": 2},
    "a number for an object": {"subject": 3},
    "null for a list": {"results": None},
    "a negative count": {"operations_omitted": -1},
    "a negative time": with_steps(step_ms=-1),
    "an endless time": with_steps(step_ms=1e300),
    "a time that is no number": with_steps(step_ms=float("nan")),
    "a row of no time": with_steps(rows=[ROW | {"total_ms": 0}]),
    "an operation without its layer": {"operations": [{"operation": 1}]},
}


@TOLD
def a_report_without_newer_fields_is_read() -> object:
    first = ("schema", "tfdoctor", "subject", "steps", "trust", "results", "breakdown_ms")
    return fields(of_text(json.dumps({name: REPORT[name] for name in first}), PLACE), "subject conditions run")


def loads(content: bytes, folder: Path) -> object:
    (folder / "report.json").write_bytes(content)
    return load(folder / "report.json", lambda *_: pytest.fail("no diagnosis is needed"), ()).subject


TOLD[loads] = {"a report is read without a diagnosis": json.dumps(REPORT).encode(), "not text": b"\xff\xfe\x00"}

test_comparisons = TOLD.test("comparisons")
