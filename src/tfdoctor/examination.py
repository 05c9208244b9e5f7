"""From a recording to all that its report shows: the commands and the Python interface show the same."""

from typing import Any

from tfdoctor.capture import sources
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.recording import Recording
from tfdoctor.rulebook.book import Rulebook
from tfdoctor.trial import stored


def examined(recording: Recording, title: str, rules: Rulebook, **asked: Any) -> Diagnosis:  # noqa: ANN401 - of `diagnose`
    """Diagnose a recording, and add what the last trial measured; what else is ``asked`` is for `diagnose`.

    Raises:
        InputError: the trace or the last trial is damaged.
    """
    diagnosis = diagnose(sources.completed(recording), rules.rules, title, settings=rules.settings, **asked)
    return stored.with_last(diagnosis, recording)
