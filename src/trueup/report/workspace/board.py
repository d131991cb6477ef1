"""Serves a folder of pages to browsers on this computer, read only."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from trueup.core.errors import TrueupError


class _Quiet(SimpleHTTPRequestHandler):
    """Logs and manifests are shown as text; nothing is kept by the browser, for pages change."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".log": "text/plain; charset=utf-8", ".jsonl": "text/plain; charset=utf-8", ".json": "application/json",
        ".toml": "text/plain; charset=utf-8", ".md": "text/plain; charset=utf-8",
    }  # fmt: skip

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: the terminal is the operator's."""


@contextmanager
def serve_folder(folder: Path, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serve `folder` while the block runs; gives the address."""
    try:
        server = ThreadingHTTPServer((host, port), partial(_Quiet, directory=str(folder)))
    except OSError as error:
        raise TrueupError(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port") from None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
