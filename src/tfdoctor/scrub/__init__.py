"""Takes host names, user names, home folders and lines of source out of a diagnosis, to show it to anyone.

What is looked for comes from the recording: its machine, its paths, its command, its file names. A home
folder becomes ``~`` wherever it stands, and a name is replaced where it is a part of an absolute path. A
name by itself is replaced where it can be nothing else: one of four letters or more that no rule of tfdoctor
uses as a word, so that a user called "a" or a host called "gpu" does not spoil the report's sentences.
"""

import re
from dataclasses import replace

from tfdoctor.diagnosis import PARTS, Diagnosis
from tfdoctor.scrub import paths
from tfdoctor.scrub.secrets import Secrets
from tfdoctor.scrub.source_lines import without_source
from tfdoctor.scrub.texts import rewritten, texts
from tfdoctor.scrub.words import Words

__all__ = ["Secrets", "scrub"]


def scrub(diagnosis: Diagnosis, secrets: Secrets) -> Diagnosis:
    """Return the diagnosis without them, for every rendering; what a rule says of itself stays."""
    diagnosis = without_source(diagnosis)
    met = (user for text in texts(diagnosis) for user in paths.of_text(text))
    hosts = (*secrets.hosts, *diagnosis.subject.hosts)
    secrets = replace(secrets, users=(*secrets.users, *met), hosts=hosts).telling()
    words = Words(secrets, _vocabulary(diagnosis))
    done: Diagnosis = rewritten(diagnosis, words)
    subject = replace(
        done.subject,
        title=words.whole(diagnosis.subject.title),
        hosts=tuple(map(words.whole, diagnosis.subject.hosts)),
    )
    return replace(done, subject=subject)


def _vocabulary(diagnosis: Diagnosis) -> frozenset[str]:
    """Return the words of the rules' documentation, in small letters: the report is made of them."""
    rules = [result.rule for result in diagnosis.results]
    said = [*PARTS, *(text for rule in rules for text in (rule.name, rule.topic, rule.doc.title))]
    said += [text for rule in rules for text in rule.doc.sections.values()]
    return frozenset(word.lower() for text in said for word in re.findall(r"\w+", text))
