"""Options that the command line shares with Python, notebooks or the settings: what each takes and what it does."""

from tfdoctor.terms.record import Record


class Number(Record):
    """An option that takes a whole number."""

    flag: str
    default: int | None
    least: int
    metavar: str
    says: str


# Options of commands that are keys of the settings under the same name.
SETTINGS = {
    "select": "Rules to apply: names and topics, or ALL.",
    "ignore": "Rules not to apply: names and topics. The report lists them as ignored. The more specific choice "
    "wins (rule name over topic over ALL); between equals, this one.",
    "fail-on": "Exit with 3 on a finding of this severity or above. Findings about the quality of the recording do "
    "not count.",
    "baseline": "File of known findings, written by --write-baseline, or the report.json of an earlier run: its "
    "findings do not count for --fail-on.",
    "history": "File of named baselines and accepted changes, written by tfdoctor history, to be committed.",
    "rules": "Folders with your own rules, which are applied as well.",
}

TRIAL_MINUTES = 10.0  # For all runs of a trial, unless the user says otherwise

EPOCHS = "Also say what the findings save of a run of N epochs; what happens once counts once."
NUMBERS = {
    "steps": Number("--steps", 20, 1, "N", "Training steps to trace."),
    "warmup": Number("--warmup", 10, 0, "N", "Training steps before tracing starts."),
    "sample_every_ms": Number(
        "--sample-every", 200, 0, "MS", "Period for sampling the machine; 0 turns sampling off."
    ),
    "for_epochs": Number("--for-epochs", None, 1, "N", EPOCHS),
}
