"""The names of people and machines in a recording."""

import os
import platform
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

from tfdoctor.recording import Recording
from tfdoctor.recording.files import manifest_in
from tfdoctor.recording.manifest import Manifest
from tfdoctor.scrub import paths
from tfdoctor.scrub.texts import texts
from tfdoctor.terms.record import Record

# Standard accounts of system, notebook and cloud images, which name nobody.
NOBODY = frozenset(
    (
        *("admin", "app", "azureuser", "colab", "debian", "docker", "ec2-user", "agent", "jovyan"),
        *("nobody", "public", "root", "runner", "sagemaker-user", "shared", "ubuntu", "user"),
        "vscode",
    )
)

# Host names that identify no machine.
NOWHERE = frozenset(("0.0.0.0", "127.0.0.1", "::1", "host", "localhost"))  # noqa: S104 - not bound to


class Secrets(Record):
    """Names to remove; the first user is that of the run. `homes` are folders that no pattern matches."""

    homes: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    @classmethod
    def of(cls, recording: Recording) -> Self:
        """Collect the names; those of this machine only if the recording was made here."""
        manifests = [recording.manifest] if recording.manifest else []
        manifests += [  # of the other workers, whose names it mentions
            manifest_in(worker) for worker in recording.workers
        ]
        hosts: list[str] = []
        for manifest in manifests:
            attached = manifest.plan.addresses if manifest.plan else ()
            hosts.append(manifest.host.name)
            hosts += [address.rpartition(":")[0].strip("[]") for address in attached]
        if not manifests:  # in other recordings a trace has the name of its host
            hosts = [trace.name.removesuffix(".xplane.pb") for trace in recording.traces]
        recorded_here = platform.node() in hosts
        homes = (str(Path("~").expanduser()),) if recorded_here else ()
        return cls(
            homes, tuple(_users(recording, manifests, recorded_here=recorded_here)), tuple(hosts)
        ).identifying()

    def identifying(self) -> Self:
        """Return each name once, without those that identify nobody and no machine."""
        homes = tuple(home for home in self.homes if home not in ("~", "/"))
        return type(self)(homes, _unlike(self.users, NOBODY), _unlike(self.hosts, NOWHERE))


def _users(recording: Recording, manifests: Iterable[Manifest], *, recorded_here: bool) -> Iterator[str]:
    for manifest in manifests:
        for path in (manifest.cwd, manifest.python, *manifest.command):
            yield from paths.of_path(path)
    shown = [str(path) for path in (recording.root, *recording.traces, *recording.workers) if path]
    for text in texts([*manifests, recording.program, shown]):
        yield from paths.of_text(text)
    if recorded_here:
        yield from filter(None, map(os.environ.get, ("LOGNAME", "USER", "USERNAME")))


def _unlike(names: Iterable[str], known: frozenset[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name and name.lower() not in known))
