"""Options that the command line, Python and notebooks share: what each takes, its default and what it does."""

from tfdoctor.terms.record import Record


class Number(Record):
    """An option that takes a whole number."""

    flag: str
    default: int | None
    least: int
    metavar: str
    says: str


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
