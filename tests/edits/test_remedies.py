"""What a remedy shows and where it is made: by an edit, as a suggestion, or by hand with the reason for that."""

import importlib

from tests.edits.kit import *
from tests.report.diagnoses import tried
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.rules import all_rules
from tfdoctor.trial import proposals


@each(*all_rules(), ids=[rule.name for rule in all_rules()])
def test_a_remedy_has_an_edit_or_its_rule_a_reason(rule: Rule) -> None:
    verdict = importlib.import_module(f"tests.rules.test_{rule.name.replace('-', '_')}").sick()
    assert isinstance(verdict, Finding)
    known = {*KINDS, *rule.edits()}
    assert {remedy.edit_id for remedy in verdict.remedies} <= known or rule.by_hand != NO_EDIT
    assert rule.by_hand[0].islower()
    assert rule.by_hand[-1].isalnum()


@each("the files have to be written again", NO_EDIT)
def test_the_reason_is_told(why: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("x = 1\n")
    results, patch = made(tmp_path, finding("own", remedy(""), by_hand=why))
    assert (missing(results), patch) == ([why], b"")


PACKAGE = '''"""A line that is too much.

## What it checks
A line.
## Why it matters
It takes time.
## How to fix
Remove it.
## Holds for
All.
## Sources
None.
"""

from tfdoctor.facts.run.device import Device
from tfdoctor.diagnosis.rule import Topic

TOPIC = Topic.RUN
BY_HAND = "only its writer knows why it is there"


def check(device: Device): ...
def sick(): ...
def healthy(): ...
'''

EDIT = """from tfdoctor.edits.kit import *

EDITS = {"remove-line": lambda module, line, _: [Splice(0, len(module.text), 0, "y = 2\\n")]}
"""


def test_a_package_brings_its_edit_which_is_imported_when_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "needless_line").mkdir()
    (tmp_path / "needless_line" / "__init__.py").write_text(PACKAGE)
    (tmp_path / "needless_line" / "edit.py").write_text(EDIT)
    (tmp_path / "train.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    package = Rule.from_module(importlib.import_module("needless_line"))
    monkeypatch.delitem(sys.modules, "needless_line")
    assert (package.edit_modules, "needless_line.edit" in sys.modules) == (("needless_line.edit",), False)
    assert rule("input-bound").edits() == {}  # which has no folder
    (result,), patch = made(tmp_path, replace(finding("", remedy("remove-line"), remedy("")), rule=package))
    edit, other = result.edits
    assert (edit.before, edit.after, other.missing) == ("x = 1", "y = 2", package.by_hand)
    assert b"+y = 2" in patch
    del sys.modules["needless_line.edit"]


def test_a_suggestion_is_shown_and_tried_when_its_rule_is_named(
    tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    """It is not in the patch; another remedy of its finding is."""
    (tmp_path / "train.py").write_text("import tensorflow as tf\nd = d.batch(32).shuffle(64)\nd = d.map(f)\n")
    recording, told = recorded(tmp_path), Told()
    suggestion = replace(remedy("earlier-shuffle", line=2), changes="the examples come in another order")
    found, both = (finding("shuffle-order", suggestion, *more) for more in ((), (remedy("parallel-map", line=3),)))
    told[partial(said, recording)] = {"a suggestion": found, "a suggestion and another remedy": both}
    results, _ = made(recording, found)

    def wanted(*only: str, keep: bool = False) -> dict[str, object]:
        variants, left = proposals.edits(recording, replace(tried(), results=results), only, keep=keep)
        said = [(variant.name, variant.model, f"may keep: {variant.may_keep}") for variant, _ in variants]
        return {"tried": said, "not tried": [(one.name, one.why) for one in left]}

    told[wanted] = {"tried: all": (), "tried: only shuffle-order": "shuffle-order"}
    told.add("tried and kept: only shuffle-order", partial(wanted, "shuffle-order", keep=True))
    golden("remedies.txt", "\n".join(told.lines()))
