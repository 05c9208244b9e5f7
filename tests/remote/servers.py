"""Servers as processes of their own: S3, Google Cloud Storage, and web servers that fail."""

import contextlib
import http.server
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

TRACE = "plugins/profile"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def process(port: int, *command: str) -> Iterator[str]:
    """Run a server until the end of the block; yield its address."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _until_open(port, server)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def _until_open(port: int, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"{server.args!r} does not answer")


def tool(name: str) -> str:
    """Return the path of a program of the environment that runs the tests."""
    return str(Path(sys.executable).parent / name)


@contextlib.contextmanager
def s3() -> Iterator[Mapping[str, str]]:
    """Run an S3 server; yield the environment that points to it."""
    port = free_port()
    with process(port, tool("moto_server"), "-H", "127.0.0.1", "-p", str(port)) as address:
        yield {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "x",
            "AWS_DEFAULT_REGION": "us-east-1",
        }


@contextlib.contextmanager
def gcs() -> Iterator[Mapping[str, str]]:
    """Run an emulator of Google Cloud Storage with the bucket "runs"; yield the environment that points to it."""
    port = free_port()
    command = (tool("gcp-storage-emulator"), "start", "--host=127.0.0.1", f"--port={port}", "--in-memory")
    with process(port, *command, "--default-bucket=runs") as address:
        yield {"STORAGE_EMULATOR_HOST": address}


class Faulty(http.server.SimpleHTTPRequestHandler):
    """A web server whose files in /cut end in the middle, and which refuses or delays others."""

    cuts = 0

    def do_GET(self) -> None:
        kind, _, rest = self.path.lstrip("/").partition("/")
        if kind == "refused":
            return self.send_error(403)
        if kind in ("cut", "once"):
            self.path = f"/{rest}"
            if kind == "cut" or not type(self).cuts:
                type(self).cuts += 1
                return self._half()
        return super().do_GET()

    def do_HEAD(self) -> None:
        kind, _, rest = self.path.lstrip("/").partition("/")
        if kind == "refused":
            return self.send_error(403)
        self.path = f"/{rest}" if kind in ("cut", "once") else self.path
        return super().do_HEAD()

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

    def handler(*arguments: Any) -> Faulty:
        return Faulty(*arguments, directory=str(folder))

    Faulty.cuts = 0
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def tfdoctor(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    return subprocess.run(
        [sys.executable, "-m", "tfdoctor", *words],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
