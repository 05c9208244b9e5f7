"""The packages that a short run imports, by their time, and those that its script uses late or not at all."""

from dataclasses import replace

from tfdoctor.diagnosis.work import ImportedPackage
from tfdoctor.edits.source import Sources
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.kit import by_key
from tfdoctor.facts.phases.run_phases import ENOUGH, RunPhases
from tfdoctor.facts.phases.run_pieces import lines_that_train
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.run_work.line_groups import NO_MODULE, package_and_name
from tfdoctor.recording import Recording
from tfdoctor.source_code.late_use import LateUse
from tfdoctor.source_code.splice import Declined
from tfdoctor.source_code.tree import SyntaxTree
from tfdoctor.terms.kinds import Phase

LEAST = 0.1  # Share of the run from which its imports are told by package
SHORT_MS = 60_000.0  # A longer run does not notice its imports
SHOWN = 5
# Packages that are imported with TensorFlow, whatever the script does.
WITH_TENSORFLOW = frozenset({"absl", "google", "h5py", "keras", "ml_dtypes", "numpy", "tensorflow", "tf_keras"})


def imported_packages(chart: Chart) -> tuple[ImportedPackage, ...]:
    """Return the packages of a short run whose imports take much of it, the largest first; () of any other run.

    What a package imports in turn is time of that package, at the line of the user's.
    """
    phases = chart.get(RunPhases)
    if not phases or not phases.whole or phases.total_ms >= SHORT_MS or phases.share(Phase.IMPORTS) < LEAST:
        return ()
    lines = ((package_and_name(line.calls)[0], line) for line in phases.at(Phase.IMPORTS) if line.at)
    known = [
        ImportedPackage(package=package, at=own[0].at, ms=sum(line.ms for line in own))
        for package, own in by_key(lines).items()
        if package not in NO_MODULE and sum(line.samples for line in own) >= ENOUGH
    ]
    shown = sorted(known, key=lambda one: -one.ms)[:SHOWN]
    # What samples show at work before the end is needed, whatever names say.
    later = [line for line in phases.lines if line.phase not in {Phase.IMPORTS, Phase.END}]
    needed = {package_and_name(name)[0] for line in later for name in (line.calls, line.runs)} | WITH_TENSORFLOW
    recording = chart.get(Recording)
    script, uses = _script(recording) if recording else ("", None)
    of_script = {one.package for one in shown if one.at and one.at.path == script} - needed if uses else set()
    return tuple(
        replace(one, late=uses.clause(one.package)) if uses and one.package in of_script else one for one in shown
    )


def _script(recording: Recording) -> tuple[str, LateUse | None]:
    """Return the script's path as shown, and what it uses late; None where it is not there as it ran."""
    place, frames = Places.of(recording), [one.frames for one in (recording.run.training if recording.run else ())]
    path = place.shown(recording.manifest.script) if recording.manifest else ""
    trains = [*map(place, lines_that_train(recording)), *(place(frame[:2]) for calls in frames for frame in calls)]
    try:
        tree = SyntaxTree(Sources(recording)[path].text)
    except Declined:
        return path, None
    return path, LateUse(tree, (at.line for at in trains if at and at.path == path))
