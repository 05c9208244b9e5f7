"""Takes host names, user names and home folders out of a diagnosis, so that it can be shown to anyone.

What is looked for comes from the recording: its machine, its paths, its command, its file names. A home
folder becomes ``~`` wherever it stands, and a name is replaced where it is a part of an absolute path. A
name by itself is replaced where it can be nothing else: one of four letters or more that no rule of tfdoctor
uses as a word, so that a user called "a" or a host called "gpu" does not spoil the report's sentences.
"""

import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, Self, TypeVar

from tfdoctor.diagnosis import PARTS, Diagnosis
from tfdoctor.manifest import Manifest
from tfdoctor.recording import MANIFEST, Recording
from tfdoctor.recording.files import json_object
from tfdoctor.rule import Rule

T = TypeVar("T")

TELLING_LETTERS = 4
"""A shorter name is likely a word, a unit or an abbreviation as well: map, max, gpu, ms."""

NOBODY = frozenset(
    (
        *("admin", "app", "azureuser", "colab", "debian", "docker", "ec2-user", "guest", "jovyan"),
        *("nobody", "public", "root", "runner", "sagemaker-user", "shared", "ubuntu", "user"),
        "vscode",
    )
)
"""Accounts that every image of a system, a notebook or a cloud has: they name nobody."""

NOWHERE = frozenset(("0.0.0.0", "127.0.0.1", "::1", "host", "localhost"))  # noqa: S104 - not bound to
"""Host names that are the same everywhere."""

START = r"(?<![\w.~/-])(?:[A-Za-z]:[\\/]+|/(?!/))"
"""Where an absolute path starts; the slashes of an address (gs://) are none."""

ENDS = r"\\/\s'\"<>|:;,()\[\]{}"
"""What ends a part of a path within a sentence."""

HOMES = rf"{START}(?:[^{ENDS}]+[\\/]+)*?(?:home|homes|Users)[\\/]+"
"""What home folders lie in, under Linux (at any mount), macOS and Windows."""

HOME = re.compile(rf"{HOMES}(?P<name>[^{ENDS}]+)(?!\w)")

WHOLE_HOME = re.compile(r"(?:[A-Za-z]:|/mnt/[a-z])?[\\/](?:home|Users)[\\/](?P<name>[^\\/]+)[\\/]")
"""The same where a text is a path and nothing else: a name may have spaces then."""

ROOTS_HOME = re.compile(rf"(?<![\w.~/-])/root(?=[{ENDS}]|$)")

PATH = re.compile(r"(?<![\w.~/-])(?:[A-Za-z]:[\\/]|/(?!/)|~\w*[\\/])[^\s'\"<>|]*")

FOREIGN = re.compile(r"(?<=[\\/])(?:site|dist)-packages[\\/]")
"""From here on a path is of a package, which may be called like somebody."""

SCRIPTS = (".ipynb", ".py", ".sh")
"""In containers scripts lie in /home itself: those are no users."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """What a recording knows of people and machines; the first home and user are those of the run."""

    homes: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    @classmethod
    def of(cls, recording: Recording) -> Self:
        """Collect them; those of this machine only when the recording was made here."""
        manifests = tuple(_manifests(recording))
        texts = [text for manifest in manifests for text in _texts(_paths_first(manifest))]
        texts += [str(path) for path in (recording.root, *recording.traces) if path]
        hosts = [manifest.host.name for manifest in manifests]
        hosts += [host for manifest in manifests for host in _asked(manifest)]
        if not manifests:  # elsewhere a trace is named after its host
            hosts += [trace.name.removesuffix(".xplane.pb") for trace in recording.traces]
        here = platform.node() in hosts
        homes = (str(Path("~").expanduser()),) if here else ()
        users = [*_users([*texts, *_texts(recording.program)]), *(_account() if here else ())]
        return cls(homes, _unlike(users, NOBODY), _unlike(hosts, NOWHERE))


def scrub(diagnosis: Diagnosis, secrets: Secrets) -> Diagnosis:
    """Return the diagnosis without them, for every rendering; what a rule says of itself stays."""
    texts = list(_texts(diagnosis))
    users = _unlike([*secrets.users, *_users(texts)], NOBODY)
    hosts = _unlike([*secrets.hosts, *diagnosis.subject.hosts], NOWHERE)
    words = _Words(replace(secrets, users=users, hosts=hosts), _vocabulary(diagnosis))
    done = _walk(diagnosis, words)
    subject = replace(
        done.subject,
        title=words.names.get(diagnosis.subject.title, done.subject.title),
        hosts=tuple(words.names.get(host, host) for host in diagnosis.subject.hosts),
    )
    return replace(done, subject=subject)


class _Words:
    """Finds what has to be replaced in a text."""

    def __init__(self, secrets: Secrets, vocabulary: frozenset[str]) -> None:
        users, hosts = _aliases(secrets.users, "user"), _aliases(secrets.hosts, "host")
        for host, alias in tuple(hosts.items()):
            hosts.setdefault(_short(host), alias)
        self.users = users
        self.names = {**users, **hosts}
        telling = {name for name in self.names if _tells(name, vocabulary)}
        self.homes = _any(secrets.homes, before=r"(?<![\w.~-])", after=r"(?![\w.-])")
        self.known = _any(users, before=HOMES, after=rf"(?=[{ENDS}]|$)")
        self.alone = _any(telling, before="(?<![A-Za-z0-9])", after="(?![A-Za-z0-9])")
        self.account = _any(users, before=r"(?<![\w.-])", after="(?=@)")
        self.file = _any(hosts, before=r"(?<![\w.-])", after=r"(?=(?:_\d+)?\.xplane\.pb)")
        self.part = _any(self.names, before=r"(?<=[\\/])", after=rf"(?=[{ENDS}]|$)")

    def __call__(self, text: str) -> str:
        """Return the text without names."""
        text = self.homes.sub("~", text)
        text = self.known.sub(self._home, text)
        text = HOME.sub(self._home, text)
        text = ROOTS_HOME.sub("~", text)
        text = PATH.sub(self._path, text)
        for pattern in (self.account, self.file, self.alone):
            text = pattern.sub(self._alias, text)
        return text

    def _home(self, found: re.Match[str]) -> str:
        """Tell the homes of several users apart."""
        name = found["name"]
        if name.endswith(SCRIPTS):
            return found[0]
        first = next(iter(self.users), name)
        return "~" if name in (first, *NOBODY) else f"~{self.users.get(name, 'user')}"

    def _path(self, found: re.Match[str]) -> str:
        own = FOREIGN.search(found[0])
        end = own.end() if own else len(found[0])
        return self.part.sub(self._alias, found[0][:end]) + found[0][end:]

    def _alias(self, found: re.Match[str]) -> str:
        return self.names[found["name"]]


def _any(names: Iterable[str], *, before: str, after: str) -> re.Pattern[str]:
    """Return a pattern for any of these names, the longest first; none of none."""
    longest = sorted(map(re.escape, names), key=len, reverse=True)
    return re.compile(f"{before}(?P<name>{'|'.join(longest)}){after}" if longest else r"(?!)")


def _aliases(names: Iterable[str], kind: str) -> dict[str, str]:
    """Number the names, unless there is one only."""
    names = tuple(names)
    return {
        name: kind if len(names) == 1 else f"{kind}-{place}"
        for place, name in enumerate(names, start=1)
    }


def _short(host: str) -> str:
    """Return a host's name without its domain; an address of numbers has none."""
    return host if re.fullmatch(r"[\d.]+", host) else host.partition(".")[0]


def _tells(name: str, vocabulary: frozenset[str]) -> bool:
    return len(name) >= TELLING_LETTERS and name.lower() not in vocabulary


def _vocabulary(diagnosis: Diagnosis) -> frozenset[str]:
    """Return the words that the report is made of, in small letters."""
    rules = [result.rule for result in diagnosis.results]
    texts = [
        *PARTS,
        diagnosis.subject.device,
        diagnosis.steps.source,
        *(text for rule in rules for text in (rule.name, rule.topic, rule.doc.title)),
        *(text for rule in rules for text in rule.doc.sections.values()),
        *(stage.name for stage in diagnosis.pipeline),
        *(row.operation for row in diagnosis.operations),
        *(measure.label for measure in (*diagnosis.model, *diagnosis.samples)),
        *(label for label, _ in diagnosis.machine),
        *diagnosis.subject.framework,
    ]
    return frozenset(word.lower() for text in texts for word in re.findall(r"\w+", text))


def _manifests(recording: Recording) -> Iterator[Manifest]:
    """Yield the recording's manifest, and those of the other workers, whose names it mentions."""
    if recording.manifest:
        yield recording.manifest
    for worker in recording.workers:
        yield Manifest.from_json(json_object(worker / MANIFEST, []))


def _asked(manifest: Manifest) -> Iterator[str]:
    """Yield the hosts that were attached to."""
    for address in (manifest.plan or {}).get("addresses") or ():
        yield str(address).rpartition(":")[0].strip("[]")


def _paths_first(manifest: Manifest) -> tuple[object, ...]:
    """Return a manifest so that the user of the run comes before those of other paths."""
    return manifest.cwd, manifest.python, manifest.command, manifest.to_json()


def _users(texts: Iterable[str]) -> list[str]:
    """Return whose home folders these texts name."""
    found: dict[str, None] = {}
    for text in texts:
        if whole := WHOLE_HOME.match(text):
            found[whole["name"]] = None
        found |= {each["name"]: None for each in HOME.finditer(text)}
    return [name for name in found if not name.endswith(SCRIPTS)]


def _account() -> Iterator[str]:
    """Yield what the reader of this is called, as far as the system says."""
    for name in ("LOGNAME", "USER", "USERNAME"):
        if os.environ.get(name):
            yield os.environ[name]


def _unlike(names: Iterable[str], known: frozenset[str]) -> tuple[str, ...]:
    """Return each name once, without those that tell nothing."""
    return tuple(dict.fromkeys(name for name in names if name and name.lower() not in known))


def _texts(value: object) -> Iterator[str]:
    """Yield every text in a value, but not those of rules, which are ours."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _texts(each)
    elif is_dataclass(value) and not isinstance(value, Rule):
        for field in fields(value):
            yield from _texts(getattr(value, field.name))


def _walk(value: T, words: Callable[[str], str]) -> T:
    """Return a value with every text in it replaced; numbers, kinds and rules stay."""
    return _walked(value, words)  # type: ignore[no-any-return] # of the type that came in


def _walked(value: Any, words: Callable[[str], str]) -> Any:  # noqa: ANN401 - of any type
    match value:
        case Enum() | Rule():
            return value
        case str():
            return words(value)
        case tuple():
            return tuple(_walked(each, words) for each in value)
        case Mapping():
            return {key: _walked(each, words) for key, each in value.items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            parts = {f.name: _walked(getattr(value, f.name), words) for f in fields(value)}
            return replace(value, **parts)
        case _:
            return value
