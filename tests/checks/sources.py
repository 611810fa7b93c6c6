"""What the search tests search: documents, and an endpoint on the loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Record = dict[str, Any]
STOP_SECONDS = 5


def pdf(text: str) -> bytes:
    """A document of one page with ``text``, which a reader mends where its table of contents is missing."""
    stream = f"BT /F1 12 Tf 40 700 Td ({text}) Tj ET"
    parts = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R "
        "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        "<< /Title (On bridges) /CreationDate (D:20210304120000Z) >>",
    ]
    data, places = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{part}\nendobj\n".encode()
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    start = len(data)
    data += f"xref\n0 {len(parts) + 1}\n0000000000 65535 f \n{table}".encode()
    return data + f"trailer << /Size 6 /Root 1 0 R /Info 5 0 R >>\nstartxref\n{start}\n%%EOF\n".encode()


class Endpoint:
    """Answers each path as ``pages`` says, and remembers what was ``asked``: path, headers and body."""

    def __init__(self, pages: dict[str, Callable[[], tuple[int, bytes]]]) -> None:
        self.pages = pages
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self.over = threading.Event()
        self.url = ""

    def hang(self) -> tuple[int, bytes]:
        """Until the test is over."""
        self.over.wait(60)
        return 200, b"{}"


def answer(*entries: Record, status: int = 200) -> Callable[[], tuple[int, bytes]]:
    return lambda: (status, json.dumps({"results": list(entries)}).encode())


@contextmanager
def serving(**pages: Callable[[], tuple[int, bytes]]) -> Iterator[Endpoint]:
    endpoint = Endpoint(pages)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            endpoint.asked.append((self.path, dict(self.headers), body))
            status, data = endpoint.pages[self.path.split("?")[0].strip("/")]()
            self.send_response(status)
            if status == 302:
                self.send_header("Location", data.decode())
            self.send_header("Content-Length", str(len(data)))
            with suppress(ConnectionError):  # whoever asked has not waited for it
                self.end_headers()
                self.wfile.write(data)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    endpoint.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.over.set()
        server.shutdown()
        server.server_close()
        thread.join(STOP_SECONDS)
