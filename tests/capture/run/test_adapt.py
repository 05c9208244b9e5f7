"""How many batches and examples a layer is adapted to, as far as the dataset says before it is read."""

from tests.capture.kit import *

calls: Any = agent.load("run.phases")


class Dataset:
    """What a dataset knows of itself."""

    def __init__(self, batch: int | None, cardinality: int, rank: int | None = 2) -> None:
        self._batch_size = batch
        self.element_spec = SimpleNamespace(shape=SimpleNamespace(rank=rank))
        self.cardinality = lambda: cardinality

    def _inputs(self) -> list[Any]:
        return []


@pytest.fixture
def adapted(monkeypatch: pytest.MonkeyPatch) -> Any:
    eager = SimpleNamespace(executing_eagerly=lambda: True)
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", eager)
    of = calls.Phases(None)
    return lambda *args, **kwargs: of.adapted((object(), *args), kwargs)


def test_batches_and_examples_are_told(adapted: Any) -> None:
    assert adapted(Dataset(1, 40_000)) == {"steps": 40_000, "examples": 40_000}
    assert adapted(data=Dataset(4096, 10)) == {"steps": 10, "examples": 40_960}


def test_no_more_batches_are_read_than_asked_for(adapted: Any) -> None:
    assert adapted(Dataset(1, 40_000), steps=300) == {"steps": 300, "examples": 300}
    assert adapted(Dataset(1, 40_000), None, 300) == {"steps": 300, "examples": 300}
    assert adapted(Dataset(1, 200), steps=300) == {"steps": 200, "examples": 200}
    assert adapted(Dataset(2, calls.INFINITE), steps=300) == {"steps": 300, "examples": 600}


def test_single_texts_are_examples(adapted: Any) -> None:
    assert adapted(Dataset(None, 500, rank=0)) == {"steps": 500, "examples": 500}


@pytest.mark.parametrize(
    "data",
    [
        Dataset(1, -2),  # a generator's: its number is not known
        Dataset(1, calls.INFINITE),
        Dataset(None, 500, rank=1),  # rows, or batches that were made otherwise
        Dataset(None, 500, rank=None),
        [[1.0], [2.0]],
        None,
    ],
)
def test_what_the_dataset_does_not_say_is_unknown(adapted: Any, data: object) -> None:
    assert adapted(data) is None
