"""A few scripts of the accuracy corpus: what is planted is found, and traps are not."""

import ast
import difflib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.accuracy import corpus
from benchmarks.accuracy.corpus import Pair
from tfdoctor.rules import all_rules

ROOT = Path(__file__).parents[2]


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
def test_twins_differ_in_little(pair: Pair) -> None:
    fault, fixed = (pair.script(twin).read_text("utf-8") for twin in corpus.TWINS)
    assert ast.get_docstring(ast.parse(fault)) == ast.get_docstring(ast.parse(fixed))
    same = difflib.SequenceMatcher(None, fault.splitlines(), fixed.splitlines()).ratio()
    assert 0.5 < same < 1.0


@pytest.mark.tensorflow
def test_planted_faults_are_found_and_traps_are_not() -> None:
    chosen = ("smoothing_in_numpy/fault", "batch_norm_by_name/fault")
    only = [word for name in chosen for word in ("--only", name)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.accuracy", "--rounds", "0", *only],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "recall: 1.000" in done.stdout
    # Long steps are there when the machine that runs the tests has other work: that is no mistake.
    assert set(re.findall(r"([\w-]+) falsely", done.stdout)) <= {"step-outlier"}, done.stdout
