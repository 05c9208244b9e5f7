"""Removes host names, user names, home folders and source lines from a diagnosis, so that it can be published.

The names come from the recording: its machine, paths, command and file names. Home folders become ``~``, and
names in absolute paths are replaced. Elsewhere a name is replaced only if it has at least four letters and is not
a word of the rules' documentation, so that a user "a" or a host "gpu" does not change the sentences.
"""

import os
import platform
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Self

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.diagnosis.step import PARTS
from tfdoctor.recording import Recording
from tfdoctor.recording.files import TRACE, manifest_in
from tfdoctor.terms.record import Record, rebuilt
from tfdoctor.terms.verdict import Edit, Errored, Finding

LEFT_OUT = "# Your source lines are removed (--scrub)."  # Precedes the example that a report shows instead
NO_TRACEBACK = "Traceback removed (--scrub): it quotes source lines."

# Standard accounts of system, notebook and cloud images, which name nobody.
NOBODY = frozenset((
    "admin", "app", "azureuser", "colab", "debian", "docker", "ec2-user", "agent", "jovyan", "nobody", "public",
    "root", "runner", "sagemaker-user", "shared", "ubuntu", "user", "vscode",
))  # fmt: skip

# Host names that identify no machine.
NOWHERE = frozenset(("0.0.0.0", "127.0.0.1", "::1", "host", "localhost"))  # noqa: S104 - not bound to
IDENTIFYING_LETTERS = 4  # Shorter names are often words, units or abbreviations as well: map, max, gpu, ms


# The start of an absolute path, but not the slashes of an address (gs://).
START = r"(?<![\w.~/-])(?:[A-Za-z]:[\\/]+|/(?!/))"
ENDS = r"\\/\s'\"<>|:;,()\[\]{}"  # Characters that end a part of a path within a sentence
# The parent of home folders, at any mount; where another path may start, the search ends, so that its time is
# proportional to the text's length.
HOMES = rf"{START}(?:[^{ENDS}]*(?:[\w.~-]/|[^{ENDS}]\\)[\\/]*)*?(?:home|homes|Users)[\\/]+"

HOME = re.compile(rf"{HOMES}(?P<name>[^{ENDS}]+)")

ROOTS_HOME = re.compile(rf"(?<![\w.~/-])/root(?=[{ENDS}]|$)")

# A home folder at the start of a path, in which the user's name may have spaces.
PATH_HOME = re.compile(r"(?:[A-Za-z]:|/mnt/[a-z])?[\\/](?:home|Users)[\\/]([^\\/:;'\"]+)(?:[\\/]|$)")
# A path from the root, or from a home.
ABSOLUTE = re.compile(r"(?<![\w.~/-])(?:[A-Za-z]:[\\/]|/(?!/)|~[\w-]*[\\/])[^\s'\"<>|]*")
# The rest of such a path names packages, which may have the name of a user.
PACKAGES = re.compile(r"[\\/](?:site|dist)-packages[\\/]")
# Suffixes of scripts, which lie directly in /home in containers: they are not users.
SCRIPTS = (".ipynb", ".py", ".sh")


class Secrets(Record):
    """Names to remove; the first user is that of the run. `homes` are folders that no pattern matches."""

    homes: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    @classmethod
    def of(cls, recording: Recording) -> Self:
        """Collect the names; those of this machine only if the recording was made here."""
        own = [recording.manifest] if recording.manifest else []
        manifests = [*own, *map(manifest_in, recording.workers)]  # the report mentions names of other workers
        hosts, users = [], []
        for manifest in manifests:
            attached = manifest.plan.addresses if manifest.plan else ()
            hosts += [manifest.host.name, *(one.rpartition(":")[0].strip("[]") for one in attached)]
            for path in (manifest.cwd, manifest.python, *manifest.command):
                users += users_of_path(path)
        if not manifests:  # in other recordings a trace has the name of its host
            hosts = [trace.name.removesuffix(TRACE) for trace in recording.traces]
        shown = tuple(str(path) for path in (recording.root, *recording.traces, *recording.workers) if path)
        users += users_in((*manifests, recording.program, shown))
        recorded_here = platform.node() in hosts
        if recorded_here:
            users += [os.environ.get(name, "") for name in ("LOGNAME", "USER", "USERNAME")]
        homes = (str(Path("~").expanduser()),) if recorded_here else ()
        return cls(homes, tuple(users), tuple(hosts)).identifying()

    def identifying(self) -> Self:
        """Return each name once, without those that identify nobody and no machine."""
        homes = tuple(home for home in self.homes if home not in ("~", "/"))
        return type(self)(homes, _unlike(self.users, NOBODY), _unlike(self.hosts, NOWHERE))


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
    outcome = result.outcome
    if isinstance(outcome, Errored) and result.rule.own:
        return replace(result, outcome=replace(outcome, traceback=NO_TRACEBACK))
    if not isinstance(outcome, Finding):
        return result
    remedies = list(outcome.remedies)
    for place, remedy in enumerate(remedies):
        if remedy.edit:
            code = "\n".join((LEFT_OUT, "# An example:", remedy.code) if remedy.code else (LEFT_OUT,))
            bare = Edit(remedy.edit.at, missing=remedy.edit.missing)
            remedies[place] = replace(remedy, code=code, edit=None, by_hand=bare)
    return replace(result, outcome=replace(outcome, remedies=tuple(remedies)))


def _unlike(names: Iterable[str], known: frozenset[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name and name.lower() not in known))


class Words:
    """Replaces names in texts; `vocabulary` contains the words of the report, in lowercase."""

    def __init__(self, secrets: Secrets, vocabulary: frozenset[str]) -> None:
        self.users = _aliases(secrets.users, "user")
        short = _aliases(tuple(dict.fromkeys(map(_short, secrets.hosts))), "host")
        hosts = short | {host: short[_short(host)] for host in secrets.hosts}
        self.names = {**self.users, **hosts}
        long = (name for name in self.names if len(name) >= IDENTIFYING_LETTERS)
        identifying = {name for name in long if name.lower() not in vocabulary}
        self.homes = _any(secrets.homes, before=r"(?<![\w.~-])", after=r"(?![\w.-])")
        self.known_home = _any(self.users, before=HOMES, after=rf"(?=[{ENDS}]|$)")
        self.account = _any(self.users, before=r"(?<![\w.-])", after="(?=@)")
        self.file = _any(hosts, before=r"(?<![\w.-])", after=r"(?=(?:_\d+)?\.xplane\.pb)")
        self.part = _any(self.names, before=r"(?<=[\\/])", after=rf"(?=[{ENDS}]|$)")
        self.alone = _any(identifying, before="(?<![A-Za-z0-9])", after="(?![A-Za-z0-9])")

    def __call__(self, text: str) -> str:
        """Return the text without names."""
        text = self.homes.sub("~", text)
        for pattern in (self.known_home, HOME):
            text = pattern.sub(self._home, text)
        text = ABSOLUTE.sub(self._path, ROOTS_HOME.sub("~", text))
        for pattern in (self.account, self.file, self.alone):
            text = pattern.sub(self._alias, text)
        return text

    def as_name(self, text: str) -> str:
        """Return the alias of a text that is a name, else the text without names."""
        return self.names.get(text) or self(text)

    def _home(self, match: re.Match[str]) -> str:
        name = match["name"]
        if name.endswith(SCRIPTS):
            return match[0]
        first = next(iter(self.users), name)
        return "~" if name == first or name.lower() in NOBODY else f"~{self.users.get(name, 'user')}"

    def _path(self, match: re.Match[str]) -> str:
        package = PACKAGES.search(match[0])
        end = package.end() - 1 if package else len(match[0])
        return self.part.sub(self._alias, match[0][:end]) + match[0][end:]

    def _alias(self, match: re.Match[str]) -> str:
        return self.names[match["name"]]


def _any(names: Iterable[str], *, before: str, after: str) -> re.Pattern[str]:
    """Return a pattern for any of these names, longest first; without names it matches nothing."""
    longest = sorted(map(re.escape, names), key=len, reverse=True)
    return re.compile(f"{before}(?P<name>{'|'.join(longest)}){after}" if longest else r"(?!)")


def _aliases(names: tuple[str, ...], kind: str) -> dict[str, str]:
    """Return an alias for each name, numbered if there are several."""
    return {name: kind if len(names) == 1 else f"{kind}-{place}" for place, name in enumerate(names, start=1)}


def _short(host: str) -> str:
    """Return a host name without its domain; an IP address stays."""
    return host if re.fullmatch(r"[\d.]+", host) else host.partition(".")[0]


def users_of_path(path: str) -> list[str]:
    """Return the user whose home folder contains a path, if any."""
    home = PATH_HOME.match(path)
    return _users([home[1]] if home else [])


def users_in(value: object) -> list[str]:
    """Return the users whose home folders the texts of a value mention, in order; what rules document has none."""
    found: list[str] = []

    def look(plain: object) -> object:
        found.extend(home["name"] for home in HOME.finditer(plain if isinstance(plain, str) else ""))
        return plain

    rebuilt(value, look, kept=(Rule,))
    return _users(found)


def _users(names: Iterable[str]) -> list[str]:
    return [name for name in names if not name.endswith(SCRIPTS)]
