"""The commands and their options: what ``--help``, completion and the reference show."""

from enum import StrEnum
from pathlib import Path

import typer

from tfdoctor.cli.options import *
from tfdoctor.cli.profile_parser import ProfileCommand, TryCommand
from tfdoctor.cli.values import finite, parse_bytes, parse_own, parse_path
from tfdoctor.rulebook.config import FailOn
from tfdoctor.terms.options import SETTINGS, TRIAL_MINUTES

LAST = 20  # Runs before the newest commit it is compared with: more narrow the interval by less than a tenth


class RecordingOptions(Group):
    """What to record of a run, and where."""

    module: str | None = MODULE
    out: Path | None = option(
        "Folder for the recording [default: runs/SCRIPT-TIME]; the workers of a job can share one.", **OUT
    )
    python: str | None = option("Python interpreter for the script.")
    steps: int = number("steps")
    warmup: int = number("warmup")
    seconds: float | None = option(
        "Trace for this long (2s, 500ms, 1m) instead of --steps, for jobs without visible steps.", "--for", **TIME
    )
    stop_after: bool = switch("End the run after tracing.", "--stop-after")
    no_trace: bool = switch(
        "Record only the account of the whole run, without a trace of its steps: for production, and for programs "
        "that never train.",
        "--no-trace",
    )
    sample_every_ms: int = number("sample_every_ms")


@command("profile", "Run a script, and report what slows it.", "profile.profile", cls=ProfileCommand)
class ProfileOptions(Group):
    """Run an unmodified script, trace some of its training steps, and report what slows them and the run.

    The exit code is that of the script. Where that is 0, it is 3 if a gate fails, and 4 if one is undecided.
    """

    ctx: typer.Context
    command: list[str] | None = argument(
        "SCRIPT [ARGS]...",
        "Training script and its arguments. After `--`, any program that starts Python: `-- bash run.sh`, "
        "`-- mpirun -n 2 python train.py`.",
        default=None,
    )
    recording: RecordingOptions
    no_report: bool = NO_REPORT
    quiet: bool = switch("Print errors only.", "--quiet", "-q")
    formats: str = REPORTS
    demands: GateOptions
    rules: RuleOptions
    savings: SavingOptions
    show: bool = SHOW
    scrub: bool = SCRUB


@command("try", "Measure what the advised changes save, by running them.", "trying.try_", cls=TryCommand)
class TryOptions(Group):
    """Run the program with the advised changes and without, by turns, and report what each saves.

    The files of the program are never written: its runs see changed copies.
    """

    ctx: typer.Context
    command: list[str] | None = argument(
        "RECORDING | SCRIPT [ARGS]...",
        "A recording made by `tfdoctor profile`, or a training script and its arguments, which is then profiled "
        "first.",
        default=None,
    )
    module: str | None = MODULE
    out: Path | None = option(
        "Folder for a new recording [default: runs/SCRIPT-TIME].", metavar="PATH", parser=parse_own
    )
    only: str | None = option("Try only the edits of these rules, comma-separated.", **RULE_NAMES)
    patch: list[Path] | None = option(
        "Also try this patch, as `git apply` would; can be repeated. With the name of a rule, the patch makes the "
        "change that this rule advises, and is compared with its promise.",
        metavar="[RULE=]DIFF",
    )
    env: list[str] | None = option("Also try this environment variable; can be repeated.", metavar="NAME=VALUE")
    usual_settings: bool = switch(
        "Also try XLA, oneDNN, tcmalloc and numbers of threads, as far as they can matter here.", "--settings"
    )
    without_parts: bool = switch(
        "Try the program without each of its parts instead of the edits: input always ready, callbacks silent, and "
        "metrics, summaries, saving or evaluation off. This shows the most that a change can save.",
        "--parts",
    )
    minutes: float = option(
        "Time for all runs together.", default=TRIAL_MINUTES, min=0.5, max=1440, callback=finite
    )
    keep: Path | None = option("Write the edits that proved to help as a diff for git apply.", **OWN_FILE)
    keep_model_changes: bool = switch(
        "With --keep, also write the changes that alter what is trained: the batch size and the widths of layers. "
        "They are tried only if --only names them.",
        "--keep-model-changes",
    )
    layer: bool = option(
        "Throw away what the runs write, where bubblewrap is installed.", "--layer/--no-layer", default=True
    )
    yes: bool = switch(
        "Do not ask before running the program where the files that it writes cannot be discarded.", "--yes", "-y"
    )
    fail_on_promise: float | None = option(
        "Exit with 3 if a promised saving is off by more than this share of the step.", **share("--fail-on-promise")
    )
    formats: str = REPORTS
    show: bool = SHOW
    scrub: bool = SCRUB
    rules: RuleOptions


@command("attach", "Trace jobs that are running.", "profile.attach")
class AttachOptions(Group):
    """Trace running jobs, all at the same time, and report what slows them.

    Workers that cannot be reached are listed; the others are still traced. TensorFlow's profiler can crash
    workers that exchange gradients: save a checkpoint first.
    """

    addresses: str = argument(
        "HOST:PORT[,HOST:PORT]...",
        "Addresses of the profiler servers of the job's workers, each started with "
        "tf.profiler.experimental.server.start(PORT).",
    )
    seconds: float = option("Trace for this long: 2s, 500ms, 1m.", "--for", default="2s", **TIME)
    out: Path | None = option("Folder for the recording [default: runs/attach-TIME].", **OUT)
    no_report: bool = NO_REPORT
    formats: str = REPORTS
    fail_on: FailOn | None = FAIL_ON
    baseline: Path | None = BASELINE
    rules: RuleOptions
    scrub: bool = SCRUB


@command("report", "Report what slows a recorded run.", "report.report")
class ReportOptions(Group):
    """Report what slows a run recorded by tfdoctor or by any TensorFlow profiler."""

    path: Path = argument(
        "PATH",
        "A recording, a folder above several (the newest is shown), a TensorBoard log directory, a run folder, an "
        "*.xplane.pb file, or a report.json, or a folder with only that, to write in other formats: without "
        "--select, --ignore, --scrub, --usd-per-hour, --usd-per-kwh, --gco2-per-kwh and --for-epochs, which need "
        "the recording.",
        parser=parse_path,
    )
    out: Path | None = option(
        "Folder for the reports [default: the recording; otherwise the current folder, as tfdoctor-report.html and "
        "so on].",
        **OUT,
    )
    formats: str = REPORTS
    demands: GateOptions
    rules: RuleOptions
    savings: SavingOptions
    patch: str | None = option(
        "Also write the changes that can be applied automatically as a diff for git apply; - is stdout.",
        metavar="FILE",
    )
    link: str = option(
        "Where the HTML report will be found: the Markdown report links to it.", default="", metavar="URL"
    )
    show: bool = SHOW
    scrub: bool = SCRUB


@command("diff", "Compare two runs of a program.", "diffing.diff")
class DiffOptions(Group):
    """Compare two runs of a program: the step, its parts, its operations and its findings."""

    before: Path = argument(
        "BEFORE", "The run before the change: a recording, a trace or its report.json.", parser=parse_path
    )
    after: Path = argument("AFTER", "The run after the change.", parser=parse_path)
    also_before: list[Path] | None = option("A further run before the change; can be repeated.", "--before", **PATH)
    also_after: list[Path] | None = option("A further run after the change; can be repeated.", "--after", **PATH)
    max_regression: float | None = option(
        "Exit with 3 if the step is slower by more than this, such as 5%, at the lower end of the interval, and "
        "with 4 if the interval contains it.",
        **share("--max-regression"),
    )
    anyway: bool = switch("Compare the times of runs that are not alike in machine or program.", "--anyway")
    shares: bool = switch("Compare shares of the step only, as for unlike machines.", "--shares")
    formats: str = FILES
    out: Path | None = FILES_FOLDER
    rules: RuleOptions
    show: bool = SHOW


@command("history", "Follow the runs of a program over its commits.", "history.history")
class HistoryOptions(Group):
    """Follow the step, the run, the peak memory and the findings of programs over their commits."""

    where: list[str] = argument(
        "RUN...", "Recordings, report.json files, folders or URLs above them, or patterns of these in quotes."
    )
    program: str = option("Show the runs of this program only, such as train.py.", default="", metavar="NAME")
    max_regression: float | None = option(
        "Exit with 3 if the step, the run or the peak memory of the newest commit is above the median of the last "
        "runs by more than this, such as 5%, at the lower end of the interval.",
        **share("--max-regression"),
    )
    fail_on: FailOn | None = option(
        "Exit with 3 on a finding of this severity or above that the newest run has and none of the last runs had."
    )
    last: int = option("Runs that the newest commit is compared with.", default=LAST, **count(1))
    history: Path | None = option(
        f"{SETTINGS['history']} [default: that of the settings, else tfdoctor-history.json]", **OWN_FILE
    )
    name_baseline: list[str] | None = option(
        "Write the figures of a run under a name, such as release-1=report.json; can be repeated.",
        metavar="NAME=RUN",
    )
    accept: list[str] | None = option(
        "Accept a change: step-ms, run-s, memory-peak-gb or a rule, at the first commit that has it, such as "
        "step-ms@3f2c1a9; needs --why; can be repeated.",
        metavar="WHAT@COMMIT",
    )
    why: str = option("Why the change is accepted.", default="", metavar="TEXT")
    by: str = option("Who accepts it [default: git's user.name].", default="", metavar="NAME")
    formats: str = FILES
    out: Path | None = FILES_FOLDER
    rules: RuleOptions
    show: bool = SHOW


@command("fleet", "Rank many runs by the time that they waste.", "fleet.fleet")
class FleetOptions(Group):
    """Diagnose many recordings, and rank the runs and the faults by what they waste."""

    where: list[str] = argument(
        "WHERE...",
        "Folders or URLs above recordings or TensorBoard log directories, report.json files, or patterns of these "
        "in quotes.",
    )
    out: Path | None = option(
        "Folder for the page, the table and the reports; recordings in its table are not examined again [default: "
        "fleet].",
        **OUT,
    )
    on: str = option(
        "Dask scheduler of a cluster, such as tcp://scheduler:8786 [default: this machine].",
        default="",
        metavar="ADDRESS",
    )
    workers: int | None = option("Recordings examined at once on this machine [default: its CPUs].", **count(1))
    timeout: float | None = option("Longest time for one recording [default: 10m].", **TIME)
    memory: int | None = option(
        "Most memory for one recording, such as 4GB [default: the machine's, shared by its workers].",
        metavar="SIZE",
        parser=parse_bytes,
    )
    reports: bool = option("Write the HTML report of each recording too (about 1 MB each).", default=True)
    usd_per_device_hour: list[str] | None = option(
        "Price of one device for one hour in US dollars: 3.20, or H100=3.20 for devices with H100 in their name; "
        "can be repeated.",
        metavar="PRICE",
    )
    rules: RuleOptions
    scrub: bool = SCRUB
    show: bool = SHOW


@command("check", "Say what a recording on this machine would contain.", "telling.check")
class CheckOptions(Group):
    """Say what a recording on this machine would contain, and what would be missing.

    Nothing is run and nothing is written. The exit code is 2 if nothing could be recorded.
    """

    python: str | None = option("Python interpreter of the script [default: that of `tfdoctor profile`].")


class Listing(StrEnum):
    """Output formats of the list."""

    TEXT = "text"
    JSON = "json"


@command("rules", "List the rules, with the facts that they need.", "telling.rules")
class RulesOptions(Group):
    """List the rules by topic, with their titles and the facts they use."""

    form: Listing = option("Output format.", "--format", default=Listing.TEXT)
    rules: RuleOptions


@command("explain", "Show the page of a rule.", "telling.explain")
class ExplainOptions(Group):
    """Show the page of a rule: what it checks, why it matters, how to fix it, its limits and an example."""

    rule: str = argument("RULE", "Name of the rule.", autocompletion=RULE_NAMES["autocompletion"])
    config: Path | None = CONFIG
    rules: list[Path] | None = OWN_RULES


@command("mcp", "Serve recordings to an assistant (MCP).", "telling.mcp")
class McpOptions(Group):
    """Serve recordings to an assistant by the Model Context Protocol, on the standard input and output."""

    folders: list[Path] | None = argument(
        "[FOLDER]...",
        "Folders whose recordings are served; nothing else is read [default: the current folder].",
        default=None,
    )
    allow_run: bool = switch("Also let clients run scripts of these folders, by profile and try.", "--allow-run")
