"""What replaces Python in the input: each expression runs, and its result is that of what it replaces."""

import subprocess
import sys
from pathlib import Path

import pytest

from tfdoctor.rules.python_input import in_place

SCRIPT = Path(__file__).parent / "run_equivalents.py"


def test_the_modules_between_package_and_function_do_not_count() -> None:
    (offered,) = in_place([("numpy.convolve", 1.0)])
    assert in_place([("numpy.core.numeric.convolve", 1.0)]) == (offered,)
    assert in_place([("scipy.signal.convolve", 1.0), ("", 1.0)]) == ()


def test_the_function_that_takes_most_comes_first_and_none_that_takes_little() -> None:
    found = in_place([("numpy.clip", 3), ("numpy.std", 2), ("numpy.std", 4), ("numpy.roll", 0.9), ("", 0.1)])
    assert [code.removeprefix("# in place of ").partition("(")[0] for code in found] == ["numpy.std", "numpy.clip"]


@pytest.mark.tensorflow
def test_the_results_are_equal(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "numpy.convolve" in done.stdout
