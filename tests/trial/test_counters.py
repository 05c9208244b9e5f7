"""The energy of a trial's steps, by counters as Linux shows them, read while time passes."""

from tests.trial.kit import *
from tfdoctor.report.trials import notes, step

WATTS = 50.0


@contextmanager
def package(root: Path) -> Iterator[None]:
    """A package of the processor that takes 50 W: its counter goes on in a thread."""
    zone = root / "intel-rapl:0"
    zone.mkdir(parents=True)
    ended, began = threading.Event(), time.monotonic()
    files = {"name": "package-0", "energy_uj": "0", "max_energy_range_uj": str(10**12)}
    for name, value in files.items():
        (zone / name).write_text(value)

    def count() -> None:
        while not ended.wait(0.01):
            new = zone / "new"
            new.write_text(str(int(WATTS * 1e6 * (time.monotonic() - began))))
            new.rename(zone / "energy_uj")

    thread = threading.Thread(target=count)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def steps(count: int, first_ns: int) -> TrialTimes:
    """Return so many steps of 100 ms."""
    starts, sizes = first_ns + 100_000_000 * np.arange(count + 1), np.ones(count + 1, dtype=np.int64)
    return sure(times_of(Loop("keras-fit", starts / 1e6, sizes, warmup=1, fewest=5))[0])


def counters(folder: Path, name: str) -> EnergyCounters:
    made = EnergyCounters(folder / f"{name}.jsonl", [RaplSampler(folder / name)])
    made.thread.start(os.getpid())
    return made


def test_a_step_takes_the_power_for_its_time(tmp_path: Path) -> None:
    with package(tmp_path / "zones"):
        known, none = counters(tmp_path, "zones"), counters(tmp_path, "no zones")
        time.sleep(1.0)
        first = time.perf_counter_ns()
        time.sleep(5.5)
        for one in (known, none):
            one.thread.stop()
    assert known.per_update(steps(54, first)) == {EnergySource.CPU: pytest.approx(0.1 * WATTS, rel=0.1)}
    # Trap: two seconds of steps are few readings of a counter.
    assert known.per_update(steps(20, first)) == none.per_update(steps(54, first)) == {}


def test_the_report_tells_it_beside_the_time() -> None:
    known = sure(tried().trials)
    rows = (replace(known.rows[0], energy_j={"GPU": 15.1}), *known.rows[1:])
    assert step(rows[0]).endswith("15.1 J (GPU)")
    told = " ".join(notes(replace(known, rows=rows, as_is_energy_j={"GPU": 18.0})))
    assert "A step as it is took 18 J (GPU)" in told
    assert " J" not in " ".join([*notes(known), *map(step, known.rows)])
