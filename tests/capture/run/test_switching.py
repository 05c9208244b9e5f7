"""The switch interval of Python: short while one thread of the script runs alone, its own otherwise."""

from tests.capture.run.kit import *

switching = agent.load("run.switching")


@pytest.fixture
def interval() -> Iterator[Any]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(switching.USUAL_S)
    yield switching.SwitchInterval()
    sys.setswitchinterval(before)


def test_it_is_short_while_one_thread_runs_alone(interval: Any) -> None:
    interval.begin()
    own = threading.get_ident()
    interval.look({own: inspect.currentframe()}, own)
    assert sys.getswitchinterval() == pytest.approx(switching.SHORT_S)
    interval.end()
    assert sys.getswitchinterval() == switching.USUAL_S


def test_a_second_thread_of_the_script_ends_that_for_good(interval: Any) -> None:
    interval.begin()
    go = threading.Event()
    other = threading.Thread(target=go.wait)
    other.start()
    interval.look(sys._current_frames(), threading.get_ident())  # noqa: SLF001 - as a sample does
    assert sys.getswitchinterval() == switching.USUAL_S
    go.set()
    other.join()
    interval.begin()
    assert sys.getswitchinterval() == switching.USUAL_S


def test_a_thread_of_ours_that_waits_is_none_of_the_script(interval: Any) -> None:
    pace = agent.load("window.stack_samples").Pace()
    started: list[int] = []

    def run() -> None:
        started.append(threading.get_ident())
        pace.rest(0.0)

    run.__code__ = run.__code__.replace(co_filename=str(switching.__file__))
    thread = agent.load("process.all_threads").OwnThread(run)
    while not started:
        time.sleep(0.001)
    frame = sys._current_frames()[started[0]]  # noqa: SLF001 - as a sample does
    interval.begin()
    interval.look({started[0]: frame}, threading.get_ident())
    assert sys.getswitchinterval() == pytest.approx(switching.SHORT_S)
    interval.end()
    pace.end()
    while thread.is_alive():
        time.sleep(0.001)


def test_it_is_not_short_while_modules_are_imported(interval: Any) -> None:
    for imports, seconds in ((True, switching.USUAL_S), (False, switching.SHORT_S)) * 2:
        interval.sampled(imports=imports)
        assert sys.getswitchinterval() == pytest.approx(seconds)
    interval.end()


def test_it_is_longer_after_a_late_sample(interval: Any) -> None:
    lates = (0.0, 0.01, *[0.0] * switching.CAREFUL, 0.0)
    seen = []
    for late_s in lates:
        interval.sampled(imports=False, late_s=late_s)
        seen.append(sys.getswitchinterval())
    short, longer = switching.SHORT_S, switching.LONGER_S
    assert seen == pytest.approx([short, *[longer] * switching.CAREFUL, short, short])
    sys.setswitchinterval(0.001)  # by the script, meanwhile
    interval.sampled(imports=False)
    assert sys.getswitchinterval() == pytest.approx(0.001)


def test_an_interval_of_the_scripts_stays(interval: Any) -> None:
    sys.setswitchinterval(0.01)
    interval.begin()
    interval.end()
    assert sys.getswitchinterval() == pytest.approx(0.01)
    sys.setswitchinterval(switching.USUAL_S)
    interval.begin()
    sys.setswitchinterval(0.02)  # by the script, meanwhile
    interval.end()
    assert sys.getswitchinterval() == pytest.approx(0.02)
