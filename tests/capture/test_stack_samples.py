"""Where Python is between the calls: which lines make the arguments, and whose callback runs."""

from tests.capture.kit import *

stack_samples: Any = agent.load("window.stack_samples")
stack: Any = agent.load("process.stack")


def training(depth: int = 0) -> SimpleNamespace:
    return SimpleNamespace(running=False, depth=depth, function=None)


@pytest.fixture
def sampler(tmp_path: Path) -> Any:
    log = agent.load("process.journal").Journal(str(tmp_path))
    return stack_samples.StackSampler(log, agent.load("program.given").Given(log))


@each(0, 1)
def test_a_known_stack_is_one_place_with_all_its_times(depth: int, sampler: Any) -> None:
    for _ in range(3):
        sampler.sample(threading.get_ident(), training(depth))
    (place,) = sampler.describe()["places"]
    assert (place["inside"], place["seen"], len(place["when_us"])) == (bool(depth), 3, 3)
    assert place["when_us"] == sorted(place["when_us"])


class Callback:
    """As Keras' base class is called."""


class Slow(Callback):
    def on_train_batch_end(self, sampler: Any) -> None:
        sampler.sample(threading.get_ident(), training())


def test_a_callback_is_named_with_its_line(sampler: Any) -> None:
    Slow().on_train_batch_end(sampler)
    (place,) = sampler.describe()["places"]
    assert (place["callback"], place["at"][0], place["looped"]) == ("Slow.on_train_batch_end", __file__, None)


def waited(until: Callable[[], object]) -> bool:
    end = time.monotonic() + 60
    while not until() and time.monotonic() < end:
        time.sleep(0.001)
    return bool(until())


def ended(thread: Any) -> bool:
    return waited(lambda: not thread.is_alive())


def test_the_thread_that_is_ready_samples_the_window(sampler: Any) -> None:
    here, before = training(), threading.enumerate()
    sampler.prepare(here)
    ready = sampler.ready.thread
    assert sampler.describe()["places"] == []
    sampler.begin(here, more_to_come=False)
    assert ready.is_alive()
    assert threading.enumerate() == before  # a script sees none of ours
    assert waited(lambda: sampler.places)
    sampler.measured()
    sampler.end()
    assert ended(ready)
    assert sampler.describe()["places"]


def test_a_thread_that_is_ready_for_something_else_is_replaced(sampler: Any) -> None:
    """Trap: another recording of the process has other loops."""
    here = training()
    sampler.prepare(training())
    thread = sampler.ready.thread
    sampler.prepare(here)
    assert ended(thread)
    assert sampler.ready.training is here
    thread = sampler.ready.thread
    sampler.release()
    assert ended(thread)


def test_a_thread_does_not_wait_for_ever(sampler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack_samples, "IDLE_RESTS", 2)
    monkeypatch.setattr(stack_samples, "AT_MOST", 0)
    here = training()
    sampler.prepare(here)
    former = sampler.ready.thread
    assert ended(former)
    sampler.prepare(here)
    assert sampler.ready.thread is not former
    sampler.begin(here, more_to_come=True)
    sampler.measured()
    sampler.end()


def pace(*, hurries: bool) -> Any:
    begun = stack_samples.Pace()
    begun.begin(hurries=hurries)
    return begun


def test_samples_are_rare_while_steps_are_measured() -> None:
    """One of 0.1 ms comes after 50 ms on the average."""
    rare = pace(hurries=False)
    began = time.monotonic()
    for _ in range(4):
        assert rare.rest(1e-4)
    assert time.monotonic() - began > 4 * 0.5 * 500 * 1e-4
    assert rare.hurries_on()  # there are not enough


@cases(
    ("", 1.0, "hurry"),  # a rest of minutes is cut short
    ("paused", 0.0, "hurry"),  # what is alive is described between the window and the calls after it, for seconds
    ("", 1.0, "end"),
)
def test_a_rest_goes_on_until_it_is_ended(paused: str, took: float, ends_by: str) -> None:
    resting, taken = pace(hurries=bool(paused)), []
    if paused:
        resting.pause()
    thread = threading.Thread(target=lambda: taken.append(resting.rest(took)))
    thread.start()
    thread.join(timeout=0.1)  # fifty times as long as a rest in a hurry
    assert thread.is_alive()
    getattr(resting, ends_by)()
    thread.join(timeout=60)
    assert taken == [ends_by == "hurry"]
    assert resting.hurries_on()


def test_there_are_enough_samples_at_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    many, few, now = pace(hurries=True), pace(hurries=False), [100.0]
    monkeypatch.setattr(stack_samples.time, "monotonic", lambda: now[0])
    many.taken = stack_samples.ENOUGH
    few.hurry()
    assert (many.hurries_on(), few.hurries_on()) == (False, True)
    now[0] += stack_samples.LONGEST_S
    assert not few.hurries_on()


def encoded(sampler: Any) -> None:
    json.dumps(training(1), default=partial(sampler.sample, threading.get_ident()))


def test_a_line_says_what_it_calls_and_who_called_it(sampler: Any) -> None:
    encoded(sampler)
    (place,) = sampler.describe()["places"]
    assert place["at"][0] == place["caller"][0] == __file__
    assert place["at"][1] < place["caller"][1]
    assert (place["calls"], place["callback"], place["inside"]) == ("json.dumps", None, True)


def elsewhere(sampler: Any, run: Callable[[Callable[[], None]], object]) -> list[Any]:
    """Sample while another thread is in a function of ours that `run` calls."""
    there, go_on = threading.Event(), threading.Event()

    def make() -> None:
        there.set()
        go_on.wait()

    thread = threading.Thread(target=run, args=(make,))
    thread.start()
    there.wait()
    sampler.sample(threading.get_ident(), training())
    go_on.set()
    thread.join()
    places: list[Any] = sampler.describe()["others"]
    return places


def test_threads_of_the_script_are_seen_with_their_lines_and_no_others(sampler: Any) -> None:
    """Trap: a thread that only runs others' code is none of the script's."""
    over = threading.Event()
    threading.Thread(target=over.wait).start()
    (place,) = [at for at in elsewhere(sampler, lambda make: make()) if not at["at"] or at["at"][0] == __file__]
    over.set()
    assert place["runs"] in {"threading.Event.set", "threading.Event.wait", "threading.Condition.wait"}
    assert (place["entry"], place["seen"]) == (None, 1)


def test_what_makes_input_is_known_by_who_calls_it(sampler: Any) -> None:
    """Keras' module is stood in for by code with its name."""
    name = "keras.src.trainers.data_adapters.py_dataset_adapter"
    module: dict[str, Any] = {"__name__": name}
    source = "def get_index(make):\n    return make()\n"
    exec(compile(source, "/x/site-packages/keras/py_dataset_adapter.py", "exec"), module)
    assert f"{name}.get_index" in {at["entry"] for at in elsewhere(sampler, module["get_index"])}


@cases((4, 11), (2, 11), (0, 9))
def test_an_instruction_without_a_line_counts_for_the_line_before(instruction: int, line: int) -> None:
    lines = [(0, 2, None), (2, 4, 11), (4, 6, None), (6, 8, 12)]
    code = SimpleNamespace(co_lines=lambda: lines, co_firstlineno=9)
    frame = SimpleNamespace(f_lineno=None, f_code=code, f_lasti=instruction)
    assert stack.line_number(frame) == line


def test_functions_of_tensorflow_have_their_public_name(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = SimpleNamespace(_tf_api_names=("random.uniform", "random_uniform"))
    module = SimpleNamespace(random_uniform=SimpleNamespace(__wrapped__=inner), other=object())
    monkeypatch.setitem(sys.modules, "tensorflow.python.ops.random_ops", module)
    names = [stack.public_name(("tensorflow.python.ops.random_ops", name)) for name in ("random_uniform", "other")]
    assert names == ["tensorflow.random.uniform", "tensorflow.python.ops.random_ops.other"]
