"""What the training is given: which arrays, whether two calls get the same ones, and how long sequences are."""

import weakref

from tests.capture.kit import *

BASE = np.arange(6000.0)


@pytest.fixture(name="given")
def fixture_of_given(log: Any) -> Any:
    return agent.load("program.given").Given(log)


def noted(given: Any, *calls: tuple[Any, ...], **named: Any) -> Any:
    for values in calls:
        given.call(values, named, waits=False)
    assert (given.compares, given.log.errors) == (False, [])
    return given.first_call["arguments"]


class Frame:
    """As pandas': its values are NumPy's."""

    __module__ = "pandas.core.frame"
    values = np.ones((4, 2))
    shape = (4, 2)


def test_the_place_kind_type_and_shape_of_arrays_in_structures(given: Any) -> None:
    """Trap: numbers, texts and scalars are no arrays."""
    given.begin("loop")
    values = 3, "x", np.float32(1.0), [BASE, {"b": Frame(), "a": np.ones((2, 3), np.int32)}]
    found = noted(given, values, values, mask=BASE[:1])
    assert [tuple(one[name] for name in ("place", "kind", "dtype", "shape", "same")) for one in found] == [
        ("3.0", "numpy", "float64", [6000], True),
        ("3.1.a", "numpy", "int32", [2, 3], True),
        ("3.1.b", "pandas", "float64", [4, 2], True),
        ("mask", "numpy", "float64", [1], True),
    ]


@cases(((BASE,), False, True), ((BASE.copy(),), True, True), ((BASE + 1,), True, False), ((BASE, BASE), None, None))
def test_new_objects_are_told_from_new_values(second: Any, anew: Any, same: Any, given: Any) -> None:
    """Calls with different arguments are not compared."""
    given.begin("loop")
    (found,) = noted(given, (BASE,), second)
    assert (found.get("anew"), found.get("same")) == (anew, same)


def test_an_array_that_is_filled_again_has_new_values(given: Any) -> None:
    """Trap: a buffer that every step writes its batch into is the same object."""
    buffer = np.zeros((64, 100), np.float32)
    given.begin("loop")
    given.call((buffer,), {}, waits=False)
    buffer[:] = 1.0
    (found,) = noted(given, (buffer,))
    assert (found["anew"], found["same"]) == (False, False)


def test_what_is_noted_before_a_window_is_that_of_the_window(given: Any) -> None:
    given.prepare("loop")
    noted(given, (BASE,), (BASE + 1,))
    assert not given.noted  # no window has opened
    given.begin("loop")
    assert (given.compares, given.noted["arguments"][0]["same"]) == (False, False)
    given.begin("another")  # loop: what it is given is noted anew
    assert (given.compares, given.noted) == (True, None)


def test_a_batch_is_not_kept_alive(given: Any) -> None:
    """Trap: a loop may end between the two calls."""
    batch = np.ones(3)
    alive = weakref.ref(batch)
    given.prepare("loop")
    given.call((batch,), {}, waits=False)
    del batch
    assert alive() is None


def placeholder(name: str, dtype: str = "float32") -> Any:
    """As a tensor of a session's graph."""
    parts = {"value_index": 0, "op": SimpleNamespace(name=name), "dtype": SimpleNamespace(name=dtype)}
    return type("Placeholder", (), parts)()


class Named:
    """As a session's graph, in which texts name tensors."""

    def as_graph_element(self, key: Any) -> Any:
        return placeholder(key.partition(":")[0], "int32") if isinstance(key, str) else key


def test_feeds_have_the_names_and_types_of_their_placeholders(given: Any) -> None:
    """A list that is fed is no array."""
    table, rows, tokens = placeholder("table"), placeholder("rows"), np.arange(8)
    given.begin("session")
    for batch in (tokens, tokens + 1):
        feeds = {"tokens:0": batch, rows: [[1.0, 2.0]], (table, table): (1, 2)}
        given.fed("session", Named(), {table: BASE, placeholder("rate"): 0.5, **feeds}, waits=False)
    assert given.noted is None  # no function's arguments
    found = given.feeds["arguments"]
    assert [(one["place"], one["kind"], one.get("fed_as"), one.get("same")) for one in found] == [
        ("table", "numpy", "float32", True),
        ("tokens", "numpy", "int32", False),
        ("rows", "python", None, None),
    ]
    assert (given.log.errors, given.compares) == ([], False)
    given.begin("loop")  # another, which calls functions again
    given.call((BASE,), {}, waits=False)
    assert (given.feeds, given.noted is None) == (None, False)


def padded(rows: list[int], steps: int = 20) -> Any:
    tokens = np.zeros((len(rows), steps), "int64")
    for at, length in enumerate(rows):
        tokens[at, :length] = range(7, 7 + length)
    return tokens


FEATURES = np.zeros((1, 20, 3), "float32")
FEATURES[0, :4, 1] = 1.0
HOLES = padded([4, 4])
HOLES[0, 0] = 0
MASK = (padded([3, 20]) > 0).astype("int64")
NAMES = ("leading", "steps", "lengths", "begins", "gaps", "mask")


@cases(
    # Batches keep their own rows, and their lengths.
    ([padded([3, 20]), padded([5, 1])], [(False, [20, 20], [[3, 20], [5, 1]], 1.0, 0.0, False)]),
    ([padded([4, 9], 9), padded([12, 30], 30)], [(False, [9, 30], [[4, 9], [12, 30]], 1.0, 0.0, False)]),
    ([MASK], [(False, [20], [[3, 20]], 1.0, 0.0, True)]),  # all values of a mask are the same
    ([FEATURES], [(False, [20], [[4]], 1.0, 0.0, False)]),  # vectors are padding where all their features are zero
    ([HOLES], [(False, [20], [[4, 4]], 0.5, 1 / 8, False)]),  # zeros at the beginning and between are counted
    # `pad_sequences` puts the zeros first: whole numbers are read from their end as well.
    (
        [padded([4, 9])[:, ::-1]],
        [(False, [20], [[20, 20]], 0.0, 1 - 13 / 40, False), (True, [20], [[4, 9]], 1.0, 0.0, False)],
    ),
)
def test_the_rows_of_batches(batches: list[Any], entries: list[Any], given: Any) -> None:
    for batch in batches:
        given.batch(({"tokens": batch}, np.ones(2)))
    found = given.describe(None)
    assert [tuple(entry[name] for name in NAMES) for entry in found][: len(entries)] == entries
    assert (found[0]["shape"], found[0]["batches"]) == (list(batches[0].shape), True)
    assert given.left == agent.load("program.given").BATCHES - len(batches)


def spec(dtype: str, *sizes: int | None) -> Any:
    shape = SimpleNamespace(rank=len(sizes), as_list=lambda: list(sizes))
    return SimpleNamespace(dtype=SimpleNamespace(name=dtype), shape=shape)


UNKNOWN = SimpleNamespace(shape=SimpleNamespace(rank=None), dtype=None)


@cases(
    *((one, True) for one in (spec("int32", None, None), spec("int64", 32, 200), spec("float32", None, None, 8))),
    *((spec("float32", None, *more), False) for more in ((None, None), (28, 28, 1), (12,))),
    *((one, False) for one in (UNKNOWN, spec("int32", 4096, 4096))),  # too large to be read while training waits
)
def test_only_batches_of_possible_sequences_are_taken(one: Any, *, expected: bool, given: Any) -> None:
    assert given.wants([spec("float32", None), one]) is expected


@each(
    *(np.zeros((2, 8, 8, 3), "float32"), np.zeros((2, 8), "float32")),  # images; columns, or one-hot labels
    *(np.zeros(shape, "int64") for shape in (2, (0, 8), (2, 2_000_000))),  # the last is too large
    *("text", None),
)
def test_other_inputs_are_left_alone(value: Any, given: Any) -> None:
    given.batch(value)
    assert (given.describe(None), given.log.errors) == ([], [])


def test_of_the_arrays_given_to_fit_a_few_rows_are_read(given: Any) -> None:
    given.fit(SimpleNamespace(_inputs=({"x": padded([2] * 1000)}, np.zeros(1000))))
    entry, _ = given.describe(None)
    assert (entry["lengths"], entry["batches"]) == ([[2] * agent.load("program.sequences").MOST_ROWS], False)


def dataset(kept: int) -> Any:
    """A pipeline whose source slices sequences of 20, and whose batches have ``kept`` positions."""
    spec = SimpleNamespace(shape=SimpleNamespace(as_list=lambda: [None, kept]))
    source = SimpleNamespace(_tensors=[padded([2, 9])], _inputs=list)
    return SimpleNamespace(element_spec=(spec,), _inputs=lambda: [source])


@cases((20, 2), (10, 0))
def test_slices_count_if_the_batches_are_as_long(kept: int, number: int, given: Any) -> None:
    assert len(given.describe(dataset(kept))) == number
