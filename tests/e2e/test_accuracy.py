"""A few scripts of the accuracy corpus: what is planted is found, and traps are not."""

import ast
import difflib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tfdoctor.rules import all_rules

ACCURACY = Path(__file__).parents[2] / "benchmarks" / "accuracy"


def module(name: str) -> ModuleType:
    """Import a module of the benchmark: it is no package."""
    spec = importlib.util.spec_from_file_location(f"accuracy_{name}", ACCURACY / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded  # dataclasses look their module up
    spec.loader.exec_module(loaded)
    return loaded


corpus = module("corpus")

pairs = pytest.mark.parametrize("pair", corpus.CORPUS, ids=lambda pair: pair.name)


def test_the_corpus_is_large_enough_and_declared_in_full() -> None:
    folders = {path.parent.name for path in corpus.PAIRS.glob("*/f*.py")}
    assert folders == {pair.name for pair in corpus.CORPUS}
    assert 2 * len(folders) >= 40
    assert sum(bool(pair.trap) for pair in corpus.CORPUS) >= 6


def test_declarations_name_rules_that_exist() -> None:
    rules = {rule.name for rule in all_rules()}
    for pair in corpus.CORPUS:
        named = {*pair.fault, *pair.fixed, *pair.undecided, *filter(None, [pair.remedy])}
        assert named <= rules
        assert pair.exists == (pair.family in rules) or pair.trap


@pairs
def test_twins_differ_in_little(pair: object) -> None:
    fault, fixed = (pair.script(twin).read_text("utf-8") for twin in corpus.TWINS)  # type: ignore[attr-defined]
    assert ast.get_docstring(ast.parse(fault)) == ast.get_docstring(ast.parse(fixed))
    same = difflib.SequenceMatcher(None, fault.splitlines(), fixed.splitlines()).ratio()
    assert 0.5 < same < 1.0


@pytest.mark.tensorflow
def test_planted_faults_are_found_and_traps_are_not() -> None:
    chosen = ("smoothing_in_numpy/fault", "batch_norm_by_name/fault")
    only = [word for name in chosen for word in ("--only", name)]
    done = subprocess.run(
        [sys.executable, str(ACCURACY), "--rounds", "0", *only],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "recall: 1.000" in done.stdout
    # Long steps are there when the machine that runs the tests has other work: that is no mistake.
    assert set(re.findall(r"([\w-]+) falsely", done.stdout)) <= {"step-outlier"}, done.stdout
