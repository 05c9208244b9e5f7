"""Removes the names of people and machines from rows, whatever made them."""

from dataclasses import replace
from pathlib import PurePosixPath

from tfdoctor.diagnosis.fleet_report import FleetRun
from tfdoctor.fleet.places import FoundRecording
from tfdoctor.remote.fetching import TRACE
from tfdoctor.scrub import Secrets, paths
from tfdoctor.scrub.words import Words


def scrubbed(run: FleetRun, found: FoundRecording) -> FleetRun:
    """Return a row whose place, error and script name nobody and no machine: a trace has the name of its host."""
    names = [PurePosixPath(found.place, file).name for file in found.files]
    hosts = [name.removesuffix(TRACE) for name in names if name.endswith(TRACE)]
    users = [*paths.of_text(found.place), *filter(None, (run.user,))]
    hosts += filter(None, (run.host,))
    words = Words(Secrets(users=tuple(users), hosts=tuple(hosts)).identifying(), frozenset())
    return replace(
        run,
        place=words(run.place),
        error=words(run.error),
        script="/".join(map(words.as_name, run.script.split("/"))),
        user="",
        host="",
    )
