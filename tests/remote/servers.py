"""Servers in threads: S3, Google Cloud Storage, and a web server that fails.

Each has its port from the beginning: one that is free may be taken until a process has started. Trap: fsspec keeps
filesystems for the life of a process, also those that lead to the server of an earlier test, which is gone.
"""

import http.server
import logging
import socket
import threading

import fsspec
from gcp_storage_emulator import server as emulator  # type: ignore[import-untyped] # it has no types
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

from tests.kit import *

HOST = "127.0.0.1"
logging.getLogger("werkzeug").setLevel(logging.ERROR)  # else it tells of each request on what a command prints


def free_port() -> int:
    with socket.socket() as one:
        one.bind((HOST, 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def running(made: http.server.HTTPServer) -> Iterator[str]:
    """Run a server until the end of the block; yield its address."""
    with made as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{HOST}:{server.server_port}"
        finally:
            server.shutdown()


@contextlib.contextmanager
def s3() -> Iterator[Mapping[str, str]]:
    """Run an S3 server; yield the environment that points to it."""
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    with running(make_server(HOST, 0, DomainDispatcherApplication(create_backend_app), threaded=True)) as address:
        keys = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "x")
        yield {"AWS_ENDPOINT_URL": address, "AWS_DEFAULT_REGION": "us-east-1", **keys}


@contextlib.contextmanager
def gcs() -> Iterator[Mapping[str, str]]:
    """Run an emulator of Google Cloud Storage with the bucket "runs"; yield the environment that points to it."""
    fsspec.get_filesystem_class("gs").clear_instance_cache()
    storage = emulator.Storage(use_memory_fs=True)
    emulator.buckets.create_bucket("runs", storage)
    with running(http.server.HTTPServer((HOST, 0), partial(emulator.RequestHandler, storage))) as address:
        yield {"STORAGE_EMULATOR_HOST": address}


class Faulty(http.server.SimpleHTTPRequestHandler):
    """A web server whose files in /cut end in the middle, and which refuses or delays others."""

    cuts = 0

    def do_GET(self) -> None:
        kind = self._kind()
        if kind == "cut" or (kind == "once" and not type(self).cuts):
            type(self).cuts += 1
            self._half()
        elif kind != "refused":
            super().do_GET()

    def do_HEAD(self) -> None:
        if self._kind() != "refused":
            super().do_HEAD()

    def _kind(self) -> str:
        """Return what is done with a request, and go on without it in the path."""
        kind, _, rest = self.path.lstrip("/").partition("/")
        if kind == "refused":
            self.send_error(403)
        elif kind in ("cut", "once"):
            self.path = f"/{rest}"
        return kind

    def _half(self) -> None:
        content = Path(self.translate_path(self.path)).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2])
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextlib.contextmanager
def web(folder: Path) -> Iterator[str]:
    """Serve a folder; yield the address."""
    Faulty.cuts = 0
    with running(http.server.ThreadingHTTPServer((HOST, 0), partial(Faulty, directory=str(folder)))) as address:
        yield address


def tfdoctor(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    command, env = [sys.executable, "-m", "tfdoctor", *words], os.environ | environment
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)
