"""What `tfdoctor profile` says at its end: the commands that apply and measure the changes."""

from tests.cli.kit import *
from tests.report import diagnoses
from tfdoctor.cli import profile
from tfdoctor.cli.profile import next_steps
from tfdoctor.remote.uploads import Uploads
from tfdoctor.terms.verdict import Edit, Finding


def test_only_changes_that_are_edits_count() -> None:
    full = diagnoses.full()
    assert next_steps(replace(full, results=()), Path("run")) == ""
    first, second, *rest = full.results
    ready, missing = (Edit(at=None, before="a", after="b"), Edit(at=None, missing="it is code of a library"))
    both = tuple(diagnoses.edited(one, ready, missing) for one in (first, second))
    none = tuple(diagnoses.edited(one, missing) for one in rest if isinstance(one.outcome, Finding))
    two, one = (next_steps(replace(full, results=(*some, *none)), Path("my run")) for some in (both, both[:1]))
    assert two == (
        "Two changes can be applied automatically: `tfdoctor report 'my run' --patch fix.diff` writes them, "
        "`tfdoctor try 'my run'` measures them in at most 10 minutes."
    )
    assert "One change can be applied automatically" in one


def test_a_recording_at_a_url_is_named_there_and_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder on this machine is gone when the user reads it, and a trial needs one."""
    sent = Uploads()
    monkeypatch.setattr(profile, "UPLOADS", sent)
    folder = sent.folder(f"file://{tmp_path}/there") / "workers" / "worker-1"
    ready = Edit(at=None, before="a", after="b")
    full = diagnoses.full()
    one = replace(full, results=(diagnoses.edited(full.results[0], ready),))
    assert next_steps(one, folder) == (
        f"One change can be applied automatically: `tfdoctor report file://{tmp_path}/there/workers/worker-1 "
        "--patch fix.diff` writes it."
    )
