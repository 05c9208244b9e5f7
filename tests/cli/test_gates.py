"""Budgets and baselines on the command line: exit codes, what is written, and what is refused."""

from tests.cli.kit import *


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def report(*arguments: str, sample: Path = SLOW, formats: str = "json") -> tuple[int, str]:
    """Report into the folder `out`; a few rules are enough."""
    select = ("--select", "input-bound,python-input,float32-matmul")
    done = tfdoctor("report", str(sample), "--out", "out", "--format", formats, *select, *arguments)
    return done.returncode, done.stdout + done.stderr.removeprefix("tfdoctor: ").rstrip("\n")


def contract() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(Path("out/report.json").read_text())
    return loaded


def settings(toml: str) -> None:
    Path("tfdoctor.toml").write_text(toml)


@pytest.mark.parametrize(
    ("budget", "state", "code"),
    [
        ("step-ms = 60", "met", 0),
        ("step-ms = 18.5", "unclear", 4),
        ("step-ms = 5", "exceeded", 3),
        ('input-wait = "5%"', "exceeded", 3),
        ("examples-per-second = 1000", "met", 0),
        ("examples-per-second = 100_000", "exceeded", 3),
        ("memory-gb = 0.1", "exceeded", 3),
        ('matrix-unit = "40%"', "unknown", 3),
    ],
)
def test_a_budget_decides_the_exit_code(budget: str, state: str, code: int) -> None:
    settings(f"[budget]\n{budget}")
    assert report()[0] == code
    (check,) = contract()["budgets"]
    assert check["state"] == state
    assert check["at"] == {"path": "tfdoctor.toml", "line": 2}
    assert bool(check["why"]) == (state == "unknown")


@pytest.mark.parametrize(
    ("share", "state", "code"), [("5%", "met", 0), ("40%", "unclear", 4), ("95%", "exceeded", 3)]
)
def test_the_distance_to_the_hardware_decides_the_exit_code(share: str, state: str, code: int) -> None:
    """8 to 85 % of the step: without the CPU's peak FLOP/s, matmuls need between none and all of their time."""
    settings('[budget]\nroofline = "99%"\n')  # the command line wins
    assert report("--fail-on-roofline", share, sample=CONVNET)[0] == code
    (check,) = contract()["budgets"]
    assert (check["state"], check["at"]) == (state, None)
    assert "(peak FLOP/s unknown)" in check["why"]


@pytest.mark.parametrize(("fail_on", "code"), [("critical", 3), ("never", 4)])
def test_what_fails_comes_before_what_is_undecided(fail_on: str, code: int) -> None:
    settings(f'fail-on = "{fail_on}"\n[budget]\nstep-ms = 18.5')
    assert report()[0] == code


def test_every_format_has_the_budgets() -> None:
    settings("[budget]\nstep-ms = 5")
    code, output = report(formats="html,md,sarif,gitlab,github")
    assert code == 3
    assert "::error file=tfdoctor.toml,line=2,title=tfdoctor%3A budget-step-ms::" in output
    assert "One budget fails: step-ms is exceeded." in " ".join(output.split())
    for name in ("html", "md", "sarif", "gitlab.json"):
        assert "step-ms" in Path(f"out/report.{name}").read_text()


def test_a_device_without_a_budget_is_said() -> None:
    settings("[budget.gpu]\nstep-ms = 5")
    code, output = report()
    assert code == 0
    assert "note: no budget was checked: none is set for a CPU" in output
    assert "budgets" not in contract()


def test_known_findings_do_not_fail_and_new_ones_do() -> None:
    assert report("--fail-on", "note", sample=CONVNET)[0] == 3
    assert report("--fail-on", "note", "--write-baseline", "known.json", sample=CONVNET)[0] == 0
    code, output = report("--fail-on", "note", "--baseline", "known.json", sample=CONVNET)
    assert code == 0
    assert "Baseline known.json: one finding known, no findings new." in output
    assert {one["known"] for one in contract()["results"] if one["outcome"] == "finding"} == {True}
    content = json.loads(Path("known.json").read_text())
    assert content["program"] == "float32_convnet.py"
    content["findings"] = [one for one in content["findings"] if one["rule"] != "float32-matmul"]
    Path("known.json").write_text(json.dumps(content))
    assert report("--fail-on", "note", "--baseline", "known.json", sample=CONVNET)[0] == 3
    assert report("--fail-on", "critical", "--baseline", "known.json", sample=CONVNET)[0] == 0


def test_the_settings_name_the_baseline_which_may_not_exist_when_it_is_written() -> None:
    settings('fail-on = "note"\nbaseline = "known.json"')
    code, said = report()
    assert (code, said) == (2, "the baseline known.json does not exist: write it with --write-baseline known.json.")
    assert not Path("out").exists()
    assert report("--write-baseline", "./known.json")[0] == 0
    assert report()[0] == 0


def test_what_is_gone_is_named_once() -> None:
    report("--write-baseline", "known.json")
    content = json.loads(Path("known.json").read_text())
    for one in content["findings"]:
        one["file"] = one["file"].replace(".py", "_fixed.py")
    program = "input_bound_fixed.py"
    Path("known.json").write_text(json.dumps(content | {"program": program}))
    code, output = report("--baseline", "known.json", "--fail-on", "warning", sample=FIXED)
    assert code == 0
    words = " ".join(output.split())
    assert words.count("of the baseline are gone") == 1
    assert "run --write-baseline again." in words
    gone = {one["rule"] for one in contract()["baseline"]["gone"]}
    assert {"input-bound", "python-input"} <= gone


@pytest.mark.parametrize(
    ("arguments", "content", "said"),
    [
        (("--baseline", "x"), None, "does not exist: write it with --write-baseline x."),
        (("--baseline", "x"), "<html>", "x is HTML"),
        (("--baseline", "x"), "{,", "x is not JSON"),
        (("--baseline", "x"), '{"schema": 9, "program": "", "findings": []}', "x has schema 9"),
        (
            ("--baseline", "x"),
            '{"schema": 1, "tfdoctor": "0", "program": "other.py", "findings": []}',
            "x is the baseline of other.py, and this is a run of input_bound.py",
        ),
        (("--write-baseline", "none/x"), None, "none is no folder"),
        (("--write-baseline", "x"), "my notes", "x exists and is no baseline"),
        (("--write-baseline", "."), None, ". is a folder"),
    ],
)
def test_what_cannot_be_used_is_one_sentence_and_nothing_is_written(
    arguments: tuple[str, ...], content: str | None, said: str
) -> None:
    if content is not None:
        Path("x").write_text(content)
    code, output = report(*arguments)
    assert code == 2
    assert said in output
    assert len(output.splitlines()) == 1
    assert not Path("out").exists()
    assert content is None or Path("x").read_text() == content


def test_an_empty_budget_is_refused_before_anything_is_written() -> None:
    settings("[budget]")
    code, output = report()
    assert code == 2
    assert output.startswith("tfdoctor.toml: budget is empty: set at least one of step-ms,")
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--baseline", "x"), "the baseline x does not exist"),
        (("--write-baseline", "none/x"), "none is no folder"),
        (("--no-report", "--write-baseline", "x"), "--write-baseline needs the report"),
    ],
)
def test_a_script_does_not_run_for_a_baseline_that_cannot_be_used(arguments: tuple[str, ...], said: str) -> None:
    Path("train.py").write_text("open('ran', 'w').close()")
    ran = tfdoctor("profile", *arguments, "train.py")
    assert ran.returncode == 2
    assert said in ran.stderr
    assert sorted(path.name for path in Path().iterdir()) == ["train.py"]


def test_the_baseline_has_no_home_folder_when_scrubbed() -> None:
    shutil.copytree(SLOW, "copy")
    assert report("--scrub", "--write-baseline", "known.json", sample=Path("copy"))[0] == 0
    assert "home" not in Path("known.json").read_text()
    assert report("--fail-on", "note", "--baseline", "known.json", sample=Path("copy"))[0] == 0
