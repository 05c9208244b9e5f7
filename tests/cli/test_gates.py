"""Budgets and baselines on the command line: exit codes, what is written, and what is refused."""

from tests.cli.kit import *

pytestmark = pytest.mark.usefixtures("alone")

RULES = ("--select", "input-bound,python-input,float32-matmul")
"""A few rules are enough."""


def report(*arguments: str, sample: Path = SLOW, formats: str = "json", toml: str = "") -> tuple[int, str]:
    """Report into the folder `out`."""
    if toml:
        Path("tfdoctor.toml").write_text(toml)
    rules = () if sample.suffix else RULES  # a stored report is not examined again
    done = tfdoctor("report", str(sample), "--out", "out", "--format", formats, *rules, *arguments)
    return done.returncode, done.stdout + done.stderr.removeprefix("tfdoctor: ").rstrip("\n")


def contract() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(Path("out/report.json").read_text())
    return loaded


told = Told()


def budgeted(toml: str, *words: str, sample: Path = SLOW) -> object:
    """Return what is told of the one budget by a stored report, and what fails by it."""
    Path("report.json").write_text(report_of(sample, *RULES))
    code, _ = report(*words, sample=Path("report.json"), toml=toml)
    (check,) = contract()["budgets"]
    return {**check, "exit code": code}


def roofline(share: str) -> object:
    """The command line wins: it is told without a place in a file."""
    return budgeted('[budget]\nroofline = "99%"\n', "--fail-on-roofline", share, sample=CONVNET)


LIMITS = ["step-ms = 60", "step-ms = 18.5", "step-ms = 5", 'input-wait = "5%"', "examples-per-second = 1000"]
LIMITS += ["examples-per-second = 100_000", "memory-gb = 0.1", 'matrix-unit = "40%"']
told[lambda limit: budgeted(f"[budget]\n{limit}")] = {limit: limit for limit in LIMITS}
told[lambda fails: budgeted(f'fail-on = "{fails}"\n[budget]\nstep-ms = 18.5')] = {
    "what fails comes before what is undecided": "critical",
    "undecided, where no finding fails": "never",
}
# 8 to 85 % of the step: without the CPU's peak FLOP/s, matmuls need between none and all of their time
told[roofline] = {f"{share} away from the hardware": share for share in ("5%", "40%", "95%")}


@told
def a_device_without_a_budget() -> object:
    code, output = report(toml="[budget.gpu]\nstep-ms = 5")
    return code, output.splitlines()[-2:], contract().get("budgets")


test_what_a_budget_says_and_its_exit_code = told.test("budgets")


def test_every_format_has_the_budgets() -> None:
    code, output = report(formats="html,md,sarif,gitlab,github", toml="[budget]\nstep-ms = 5")
    assert code == 3
    assert "::error file=tfdoctor.toml,line=2,title=tfdoctor%3A budget-step-ms::" in output
    assert "One budget fails: step-ms is exceeded." in " ".join(output.split())
    for name in ("html", "md", "sarif", "gitlab.json"):
        assert "step-ms" in Path(f"out/report.{name}").read_text()


def known(**changes: Any) -> Any:
    """Return the baseline as it is then."""
    path = Path("known.json")
    content = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(content))
    return content


def failed(on: str, *words: str) -> int:
    return report("--fail-on", on, *words, sample=CONVNET)[0]


def test_known_findings_do_not_fail_and_new_ones_do() -> None:
    assert [failed("note"), failed("note", "--write-baseline", "known.json")] == [3, 0]
    code, output = report("--fail-on", "note", "--baseline", "known.json", sample=CONVNET)
    assert (code, "Baseline known.json: one finding known, no findings new." in output) == (0, True)
    assert {one["known"] for one in contract()["results"] if one["outcome"] == "finding"} == {True}
    content = known()
    assert content["program"] == "float32_convnet.py"
    known(findings=[one for one in content["findings"] if one["rule"] != "float32-matmul"])
    assert [failed(on, "--baseline", "known.json") for on in ("note", "critical")] == [3, 0]


def test_the_settings_name_the_baseline_which_may_not_exist_when_it_is_written() -> None:
    code, said = report(toml='fail-on = "note"\nbaseline = "known.json"')
    assert (code, said) == (2, "the baseline known.json does not exist: write it with --write-baseline known.json.")
    assert not Path("out").exists()
    assert [report("--write-baseline", "./known.json")[0], report()[0]] == [0, 0]


def test_what_is_gone_is_named_once() -> None:
    report("--write-baseline", "known.json")
    findings = [one | {"file": one["file"].replace(".py", "_fixed.py")} for one in known()["findings"]]
    known(findings=findings, program="input_bound_fixed.py")
    code, output = report("--baseline", "known.json", "--fail-on", "warning", sample=FIXED)
    words = " ".join(output.split())
    assert (code, words.count("of the baseline are gone"), "run --write-baseline again." in words) == (0, 1, True)
    gone = {one["rule"] for one in contract()["baseline"]["gone"]}
    assert {"input-bound", "python-input"} <= gone


def test_the_baseline_has_no_home_folder_when_scrubbed() -> None:
    copy = shutil.copytree(SLOW, Path("copy"))
    assert report("--scrub", "--write-baseline", "known.json", sample=copy)[0] == 0
    assert "home" not in Path("known.json").read_text()
    assert report("--fail-on", "note", "--baseline", "known.json", sample=copy)[0] == 0
