"""Removes host names, user names, home folders and source lines from a diagnosis, so that it can be published.

The names come from the recording: its machine, paths, command and file names. Home folders become ``~``, and
names in absolute paths are replaced. Elsewhere a name is replaced only if it has at least four letters and is not
a word of the rules' documentation, so that a user "a" or a host "gpu" does not change the sentences.
"""

import re
from dataclasses import replace

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.step import PARTS
from tfdoctor.scrub import paths
from tfdoctor.scrub.secrets import Secrets
from tfdoctor.scrub.source_lines import without_source
from tfdoctor.scrub.texts import rewritten, texts
from tfdoctor.scrub.words import Words

__all__ = ["Secrets", "scrub"]


def scrub(diagnosis: Diagnosis, secrets: Secrets) -> Diagnosis:
    """Return the diagnosis without these names; the documentation of rules stays."""
    diagnosis = without_source(diagnosis)
    mentioned = (user for text in texts(diagnosis) for user in paths.of_text(text))
    hosts = (*secrets.hosts, *diagnosis.subject.hosts)
    secrets = replace(secrets, users=(*secrets.users, *mentioned), hosts=hosts).identifying()
    words = Words(secrets, _vocabulary(diagnosis))
    scrubbed: Diagnosis = rewritten(diagnosis, words)
    subject = replace(
        scrubbed.subject,
        title=words.as_name(diagnosis.subject.title),
        hosts=tuple(map(words.as_name, diagnosis.subject.hosts)),
    )
    return replace(scrubbed, subject=subject)


def _vocabulary(diagnosis: Diagnosis) -> frozenset[str]:
    """Return the words of the rules' documentation in lowercase: the report consists of them."""
    texts_shown = list(PARTS)
    for rule in (result.rule for result in diagnosis.results):
        texts_shown += [rule.name, rule.topic, rule.doc.title, *rule.doc.sections.values()]
    return frozenset(word.lower() for text in texts_shown for word in re.findall(r"\w+", text))
