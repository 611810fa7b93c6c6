"""A relay in front of a server: its connections can be cut and reconnected, and it speaks TLS for PostgreSQL.

The packaged PostgreSQL server has no TLS of its own.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import trustme

SSL_REQUEST = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
"""What a client of PostgreSQL sends first to ask for TLS; the server answers ``S``."""
MOST_BYTES = 1 << 16
END_SECONDS = 30.0


class Relay:
    """Passes on what comes to ``port`` on the loopback interface to ``target``, a host and a port, and back."""

    def __init__(self, target: tuple[str, int], certificate: ssl.SSLContext | None) -> None:
        self._target = target
        self._certificate = certificate
        self._loop = asyncio.new_event_loop()
        self._connected = asyncio.Event()
        self._connected.set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="relay", daemon=True)
        self._thread.start()
        listening = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._serve, "127.0.0.1", 0), self._loop)
        self._server = listening.result(END_SECONDS)
        self.port: int = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """From now on no byte arrives, and no connection ends, as with a cable that is pulled out."""
        self._loop.call_soon_threadsafe(self._connected.clear)

    def reconnect(self) -> None:
        """Pass on what came meanwhile, and what comes."""
        self._loop.call_soon_threadsafe(self._connected.set)

    def end(self) -> None:
        """Drop all connections."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(END_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(END_SECONDS)
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        try:
            await self._connected.wait()
            if self._certificate is not None:
                await self._begin_tls(reader, writer, self._certificate)
            answers, requests = await asyncio.open_connection(*self._target)
            writers.append(requests)
            await asyncio.gather(self._pass_on(reader, requests), self._pass_on(answers, writer))
        except (OSError, asyncio.IncompleteReadError):
            pass  # one of both is gone, or a client does not trust the certificate
        finally:
            for each in writers:
                each.transport.abort()
            await asyncio.gather(*(each.wait_closed() for each in writers), return_exceptions=True)

    @staticmethod
    async def _begin_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, own: ssl.SSLContext) -> None:
        if await reader.readexactly(len(SSL_REQUEST)) != SSL_REQUEST:
            raise ConnectionAbortedError
        writer.write(b"S")
        await writer.drain()
        await writer.start_tls(own)

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(MOST_BYTES):
                await self._connected.wait()
                target.write(data)
                await target.drain()
        target.close()


@contextmanager
def relayed(target: tuple[str, int], certificate: ssl.SSLContext | None = None) -> Iterator[Relay]:
    """A relay for the duration of the block. ``certificate``: it accepts only clients of PostgreSQL that use TLS."""
    relay = Relay(target, certificate)
    try:
        yield relay
    finally:
        relay.end()


def certificate_for(name: str, authority_file: Path) -> ssl.SSLContext:
    """The side of a server called ``name``, a host or an address; its certificate authority is written to the file."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(authority_file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context
