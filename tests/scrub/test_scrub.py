"""What names a person or a machine is in no rendering of a scrubbed report; the rest is as it was."""

import html
import platform

from typer.testing import CliRunner

from tests.kit import *
from tests.report import diagnoses
from tfdoctor import cli
from tfdoctor.diagnosis import Diagnosis, Subject
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.recording import Recording
from tfdoctor.report import terminal
from tfdoctor.report.formats import FORMATS, render
from tfdoctor.scrub import Secrets, scrub
from tfdoctor.terms.record import rebuilt
from tfdoctor.terms.verdict import Edit, Errored, Finding, Location, Replacement
from tfdoctor.trace.wire import parse

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "cpu-input-bound"

HOST, FULL_HOST = "trainer-7", "trainer-7.corp.example.org"
USER, OTHER, SPACED = "jane.roe", "bobsmith", "Jane Roe"
PLANTED = (HOST, FULL_HOST, USER, OTHER, SPACED, "corp.example")

SAID = {
    f"/home/{USER}/proj/train.py and '/home/{USER}' of {USER},": "~/proj/train.py and '~' of user-1,",
    f"on {HOST} and {FULL_HOST}:6009;": "on host and host:6009;",
    f"/mnt/nfs/home/{OTHER}/data, /Users/{OTHER}/x,": "~user-2/data, ~user-2/x,",
    f"/scratch/{USER}/run, s3://{OTHER}/data,": "/scratch/user-1/run, s3://user-2/data,",
    f"C:\\Users\\{SPACED}\\proj and D:/Users/{OTHER}/a b,": "~user-3\\proj and ~user-2/a b,",
    f"'C:\\\\Users\\\\{USER}\\\\proj',": "'~\\\\proj',",
    f"({USER}@{HOST}), --data=/home/{OTHER},": "(user-1@host), --data=~user-2,",
    f"{HOST}_6009.xplane.pb, user={USER}, ~{USER}/x,": "host_6009.xplane.pb, user=user-1, ~user-1/x,",
    f"/home/{USER}/lib/site-packages/keras/x.py": "~/lib/site-packages/keras/x.py",
}
"""Every way in which a text may name them, and what is left of it."""

TOLD = " ".join(SAID)

SECRETS = Secrets(users=(USER, OTHER, SPACED), hosts=(FULL_HOST,))


def planted() -> Diagnosis:
    """Return a diagnosis in which every text but those of rules tells all."""
    every = rebuilt(diagnoses.full(), lambda plain: TOLD if isinstance(plain, str) else plain, kept=(Rule,))
    return replace(every, subject=replace(every.subject, hosts=(FULL_HOST,), title=USER))


def renderings(diagnosis: Diagnosis) -> dict[str, str]:
    """Return every rendering, as its reader sees it: without what only its markup needs."""
    every = {name: render(name, diagnosis) for name in FORMATS}
    every["terminal"] = terminal.render(diagnosis, color=False)
    return {name: seen(text) for name, text in every.items()}


def seen(text: str) -> str:
    unescaped = html.unescape(text).replace("\N{ZERO WIDTH SPACE}", "")
    unescaped = re.sub(r"\\u([0-9a-f]{4})", lambda code: chr(int(code[1], 16)), unescaped)
    return re.sub(r"\\(?=[^\w\s])", "", unescaped)  # Markdown's escapes, and JSON's


OF_FINDINGS = ("github", "gitlab", "sarif")
"""Formats that contain the findings with a line and nothing else."""


def leaks(text: str) -> list[str]:
    flat = re.sub(r"\s+", " ", text).casefold()  # the terminal breaks lines
    return [name for name in PLANTED if name.casefold() in flat]


def test_the_planted_names_are_in_every_rendering_at_first() -> None:
    for name, text in renderings(planted()).items():
        assert {HOST, USER, OTHER} <= set(leaks(text)) or name in OF_FINDINGS, name


def test_no_rendering_of_a_scrubbed_diagnosis_names_anyone() -> None:
    assert {name: leaks(text) for name, text in renderings(scrub(planted(), SECRETS)).items() if leaks(text)} == {}


@cases(*SAID.items(), ids=[*SAID.values()])
def test_homes_become_tildes_and_what_is_below_them_stays(told: str, left: str) -> None:
    assert scrubbed(told, SECRETS) == left


def scrubbed(text: str, secrets: Secrets) -> str:
    """Return one text of a diagnosis, with the words of real rules around it."""
    base = diagnoses.full()
    base = replace(base, unrecorded=(text,), subject=replace(base.subject, hosts=()))
    return scrub(base, secrets).unrecorded[0]


@cases(
    (Secrets(users=("a",)), "a step of a GPU takes a/b, a@ 3 ms"),
    (Secrets(users=("root",)), "the root of the tree, run as root"),
    (Secrets(hosts=("gpu",)), "gpu busy, gpu/kernel"),
    (Secrets(users=("map",)), ".map(decode) runs Python; model/map/conv"),
    (Secrets(users=("device",)), "the device does nothing, IteratorGetNext/device/x"),
    (Secrets(users=("train",)), "train.py trains, pretrained"),
    (Secrets(users=("jane",)), "janes model, Ujane, jane2"),
    (Secrets(hosts=("node",)), "nodes of nodejs"),
    (Secrets(hosts=("localhost",)), "localhost:6009 was idle"),
    (Secrets(), "s3://bucket/home/x and model/home/x, /home/train.py"),
    (Secrets(users=("keras",)), "/usr/lib/python3/dist-packages/keras/layers/dense.py:3"),
)
def test_words_that_are_no_names_stay(secrets: Secrets, text: str) -> None:
    known = "a device waits for train data of keras"  # as the documentation of rules says
    rules = tuple(replace(each, rule=diagnoses.rule("x", why=known)) for each in diagnoses.full().results)
    base = replace(diagnoses.full(), results=rules, unrecorded=(text,))
    assert scrub(base, secrets).unrecorded[0] == text.replace("a@", "user@")


@cases(
    (Secrets(users=("a",)), "/scratch/a/b.py", "/scratch/user/b.py"),
    (Secrets(users=("root",)), "/root/proj/x.py and '/root'", "~/proj/x.py and '~'"),
    (Secrets(hosts=("gpu",)), "gpu.xplane.pb of /logs/gpu/1", "host.xplane.pb of /logs/host/1"),
    (Secrets(hosts=("n1.a.org", "n2.a.org")), "n1.a.org, n2.a.org", "host-1, host-2"),
    (Secrets(hosts=("10.1.2.3",)), "10.1.2.3:6009", "host:6009"),
    (Secrets(users=("jane",)), "jane_model.py, run-jane", "user_model.py, run-user"),
    (Secrets(homes=("/u/p/ab",)), "/u/p/ab/x.py /u/p/abc", "~/x.py /u/p/abc"),
    (Secrets(), "/home/stranger/x.py", "~/x.py"),
    (Secrets(), "/home/one/x.py and /home/another/y", "~/x.py and ~user-2/y"),
)
def test_names_are_replaced_where_they_can_be_nothing_else(secrets: Secrets, text: str, expected: str) -> None:
    assert scrubbed(text, secrets) == expected


def test_numbers_kinds_and_rules_are_untouched() -> None:
    base = diagnoses.full()
    bare = (diagnoses.edited(one) if isinstance(one.outcome, Finding) else one for one in base.results)
    base = replace(base, results=tuple(bare))
    assert scrub(base, Secrets()) == replace(base, subject=replace(base.subject, hosts=("host",)))


def test_an_ambiguous_name_is_replaced_where_a_field_holds_nothing_else() -> None:
    base = replace(diagnoses.no_steps(), subject=Subject(title="gpu", hosts=("gpu",)))
    assert scrub(base, Secrets()).subject == Subject(title="host", hosts=("host",))


def test_locations_keep_their_lines() -> None:
    base = diagnoses.full()
    at = Location("/home/jane/train.py", 12)
    base = replace(base, operations=tuple(replace(row, at=at) for row in base.operations))
    assert scrub(base, Secrets()).operations[0].at == Location("~/train.py", 12)


# Lines of source

SECRET = "hunter2hunter2"


def quoting() -> Diagnosis:
    """Return a diagnosis that quotes the user's source: a line to change, and a rule of theirs that failed."""
    base, line = diagnoses.full(), f'data = load("s3://x", password="{SECRET}").map(decode)'
    found, *others = base.results
    more = Replacement((41, 1), (41, 1), line)
    edit = Edit(Location("train.py", 41), line, f"{line}.prefetch(2)", replacements=(more,))
    trace = f'  File "own.py", line 3, in check\n    connect("{SECRET}")\nOSError'
    failed = Errored(error="OSError()", traceback=trace)
    mine = Result(rule=replace(diagnoses.rule("own"), own=True), outcome=failed)
    changed = diagnoses.edited(found, edit, *found.edits[1:])
    return replace(base, results=(changed, *others, mine), patch=SECRET.encode())


def test_no_rendering_of_a_scrubbed_diagnosis_quotes_source() -> None:
    for name, text in renderings(quoting()).items():
        assert SECRET in text or name in {"terminal", "github", "gitlab"}, name
    for name, text in renderings(scrub(quoting(), SECRETS)).items():
        assert SECRET not in text, name


def test_a_scrubbed_report_shows_the_example_and_says_why() -> None:
    done = scrub(replace(quoting(), patch=b"-x"), SECRETS)
    assert done.patch == b""
    for name in ("html", "json", "md"):
        text = renderings(done)[name]
        assert "Your source lines are removed (--scrub)." in text, name
        assert "dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)" in text, name


# From the recording to the files


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Return a real recording, as if it had been made by somebody on some machine."""
    out = tmp_path / USER / "runs"
    run = out / "plugins" / "profile" / "run"
    run.mkdir(parents=True)
    space = parse(next(SAMPLE.glob("plugins/profile/*/*.xplane.pb")))
    space.hostnames[:] = [FULL_HOST]
    space.warnings.append(f"{HOST} dropped events")
    (run / f"{HOST}.xplane.pb").write_bytes(space.SerializeToString())
    (run / f"{OTHER}-pc.xplane.pb").write_bytes(space.SerializeToString())
    built = gzip.decompress((SAMPLE / "program.json.gz").read_bytes())
    built = re.sub(rb'"(?:/home/user/train/)?([a-z_]+\.py)"', rb'"/data/jane.roe/\1"', built)
    (out / "program.json.gz").write_bytes(gzip.compress(built))
    (out / "tfdoctor.json").write_text(json.dumps(manifest()))
    return out


def manifest() -> dict[str, object]:
    said = json.loads((SAMPLE / "tfdoctor.json").read_text())
    python, data = f"/home/{USER}/venv/bin/python", f"/mnt/home/{OTHER}/data"
    return {
        **said,
        "command": [python, "train.py", f"--data={data}", f"--run={USER}-1"],
        "cwd": f"/home/{USER}/proj",
        "python": python,
        "host": {**said["host"], "name": FULL_HOST},
        "missing": [{"what": "trace of x", "why": f"{data} on {HOST} is {OTHER}'s"}],
    }


def test_secrets_come_from_the_recording(recorded: Path) -> None:
    assert Secrets.of(Recording.open(recorded)) == Secrets(users=(USER, OTHER), hosts=(FULL_HOST,))


@each([], ["--scrub"], ids=["as it is", "scrubbed"])
def test_a_scrubbed_report_names_nobody(option: list[str], recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(recorded.parent)
    done = CliRunner().invoke(cli.app, ["report", str(recorded), "--format", "html,json,md", *option])
    texts = {path.name: seen(path.read_text()) for path in recorded.glob("report.*")} | {"terminal": done.output}
    assert (done.exit_code, len(texts)) == (0, 4)
    for name, text in texts.items():
        assert (bool(leaks(text)), "ms" in text) == (not option, True), name


def test_the_workers_of_a_job_are_all_named_somewhere(recorded: Path) -> None:
    """The report compares them, and calls the machines by their aliases."""
    for place, host in enumerate((HOST, "elsewhere-3")):
        folder = recorded / "workers" / f"{host}-11"
        folder.mkdir(parents=True)
        said = {**manifest(), "host": {"name": host}, "worker": {"place": place}}
        (folder / "tfdoctor.json").write_text(json.dumps(said))
    done = CliRunner().invoke(cli.app, ["report", str(recorded), "--format", "json", "--scrub"])
    text = seen((recorded / "report.json").read_text())
    assert (done.exit_code, leaks(text), "elsewhere" in text) == (0, [], False)
    assert '"name": "host-1-11"' in text


def test_a_logdir_of_others_is_named_after_its_hosts(tmp_path: Path) -> None:
    run = tmp_path / "plugins" / "profile" / "run"
    run.mkdir(parents=True)
    for host in ("gpu", "n01"):
        (run / f"{host}.xplane.pb").write_bytes(next(SAMPLE.glob("plugins/profile/*/*.xplane.pb")).read_bytes())
    assert Secrets.of(Recording.open(tmp_path)).hosts == ("gpu", "n01")


def test_the_reader_is_left_out_only_where_the_recording_was_made(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/net/people/mallory")
    monkeypatch.setenv("LOGNAME", "mallory")
    assert "mallory" not in Secrets.of(Recording.open(recorded)).users
    said = {**manifest(), "host": {"name": platform.node() or "unnamed"}}
    (recorded / "tfdoctor.json").write_text(json.dumps(said))
    found = Secrets.of(Recording.open(recorded))
    assert (found.homes, "mallory" in found.users) == (("/net/people/mallory",), True)
