"""Removes host names, user names, home folders and source lines from a diagnosis, so that it can be published.

The names come from the recording: its machine, paths, command and file names. Home folders become ``~``, and
names in absolute paths are replaced. Elsewhere a name is replaced only if it has at least four letters and is not
a word of the rules' documentation, so that a user "a" or a host "gpu" does not change the sentences.
"""

import re
from dataclasses import replace

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.diagnosis.step import PARTS
from tfdoctor.scrub.words import Secrets, Words, users_in
from tfdoctor.terms.record import rebuilt
from tfdoctor.terms.verdict import Edit, Errored, Finding, Remedy

__all__ = ["Secrets", "scrub"]

LEFT_OUT = "# Your source lines are removed (--scrub)."  # Precedes the example that a report shows instead
NO_TRACEBACK = "Traceback removed (--scrub): it quotes source lines."


def scrub(diagnosis: Diagnosis, secrets: Secrets) -> Diagnosis:
    """Return the diagnosis without these names and without source; the documentation of rules stays."""
    results = tuple(map(_without_source, diagnosis.results))
    diagnosis = replace(diagnosis, results=results, repository={}, lines={}, patch=b"")
    hosts = (*secrets.hosts, *diagnosis.subject.hosts)
    secrets = replace(secrets, users=(*secrets.users, *users_in(diagnosis)), hosts=hosts).identifying()
    said = list(PARTS)  # by the rules' documentation: the report consists of its words
    for rule in (result.rule for result in results):
        said += [rule.name, rule.topic, rule.doc.title, *rule.doc.sections.values()]
    words = Words(secrets, frozenset(word.lower() for text in said for word in re.findall(r"\w+", text)))
    scrubbed = rebuilt(diagnosis, lambda plain: words(plain) if isinstance(plain, str) else plain, kept=(Rule,))
    title, hosts = words.as_name(diagnosis.subject.title), tuple(map(words.as_name, diagnosis.subject.hosts))
    return replace(scrubbed, subject=replace(scrubbed.subject, title=title, hosts=hosts))


def _without_source(result: Result) -> Result:
    """Return a result with examples instead of the user's lines: any part of a line can be a secret."""
    outcome, remedies = result.outcome, list[Remedy]()
    if isinstance(outcome, Errored) and result.rule.own:
        return replace(result, outcome=replace(outcome, traceback=NO_TRACEBACK))
    if not isinstance(outcome, Finding):
        return result
    for remedy in outcome.remedies:
        if remedy.edit:
            code = "\n".join((LEFT_OUT, "# An example:", remedy.code) if remedy.code else (LEFT_OUT,))
            bare = Edit(remedy.edit.at, missing=remedy.edit.missing)
            remedies.append(replace(remedy, code=code, edit=None, by_hand=bare))
        else:
            remedies.append(remedy)
    return replace(result, outcome=replace(outcome, remedies=tuple(remedies)))
