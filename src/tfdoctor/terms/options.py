"""Options that the command line, Python and notebooks share: what each takes, its default and what it does."""

from tfdoctor.terms.record import Record


class Number(Record):
    """An option that takes a whole number."""

    default: int | None
    least: int
    metavar: str
    says: str


NUMBERS = {
    "steps": Number(20, 1, "N", "Training steps to trace."),
    "warmup": Number(10, 0, "N", "Training steps before tracing starts."),
    "sample_every": Number(200, 0, "MS", "Period for sampling the machine; 0 turns sampling off."),
    "for_epochs": Number(
        None, 1, "N", "Also say what the findings save of a run of N epochs; what happens once counts once."
    ),
}
