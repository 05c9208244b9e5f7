"""What tests of the recorder ask for."""

from tests.capture import agent, windows
from tests.kit import *


@pytest.fixture
def log(tmp_path: Path) -> Any:
    """The agent's journal."""
    return agent.load("process.journal").Journal(str(tmp_path))


@pytest.fixture
def window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    return windows.make(tmp_path, monkeypatch)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Where a script is to be written, in a folder of its own."""
    (tmp_path / "project").mkdir()
    return tmp_path / "project" / "train.py"
