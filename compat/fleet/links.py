"""Connections that a run can fail: between each node and the store of objects, and between each two nodes.

`Links` starts this file as a process of its own, which forwards connections, so that no client of the run delays them. A link has a fault:

    none     bytes pass
    refuse   connections are reset, and new ones too
    hang     bytes wait both ways until the fault ends; what was sent arrives then
    there    bytes of the side that connected wait
    back     bytes of the other side wait
    503      a request of HTTP is answered 503, and does not reach the store
    deaf     a request reaches the store; when its answer comes, the connection is reset
    slow     each piece of up to 64 KiB waits for 300 ms
"""

import asyncio
import contextlib
import json
import subprocess
import sys
import threading
from pathlib import Path

PIECE_BYTES_MAX = 1 << 16
SLOW_SECONDS = 0.3

#: Seconds that a side may go on after the other one has ended.
LAST_SECONDS_MAX = 1.0

REFUSED = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Links:
    """The process that forwards, as the run sees it."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lock = threading.Lock()

    def ask(self, **what):
        with self.lock:
            self.process.stdin.write(json.dumps(what) + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())

    def forward(self, name, host, target):
        """Listens on a free port of a host, forwards to a target HOST:PORT, and returns the port."""
        return self.ask(do="forward", name=name, host=host, target=target)

    def fail(self, name, fault):
        self.ask(do="fail", name=name, fault=fault)

    def end(self):
        self.process.kill()
        self.process.wait()


def compile_connect(folder):
    """Compiles connect.c into a folder. Returns the file to be preloaded, or None where there is no compiler."""
    library = Path(folder) / "connect.so"
    source = Path(__file__).with_name("connect.c")
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return library


class Connection:
    """One connection through a link."""

    def __init__(self, link, client, server):
        self.link, self.client, self.server = link, client, server
        #: Whether the client's next byte begins a request: it has the answer to the one before.
        self.is_at_start = True

    def reset(self):
        for _, writer in (self.client, self.server):
            writer.transport.abort()

    async def there(self):
        """From the side that connected."""
        reader, writer = self.client[0], self.server[1]
        while piece := await reader.read(PIECE_BYTES_MAX):
            if self.link.fault == "503" and self.is_at_start:
                await self.refuse(piece)
                return
            self.is_at_start = False
            await self.link.wait("there")
            writer.write(piece)
            await writer.drain()
        await self.link.wait("there")
        writer.write_eof()

    async def back(self):
        reader, writer = self.server[0], self.client[1]
        while piece := await reader.read(PIECE_BYTES_MAX):
            if self.link.fault == "deaf":
                self.reset()
                return
            self.is_at_start = True
            await self.link.wait("back")
            writer.write(piece)
            await writer.drain()
        await self.link.wait("back")
        writer.write_eof()

    async def refuse(self, request):
        """Reads a request to its end, and answers it."""
        reader, writer = self.client
        while b"\r\n\r\n" not in request:
            request += await reader.read(PIECE_BYTES_MAX)
        head, body = request.split(b"\r\n\r\n", 1)
        length = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        left = int(length[0]) - len(body) if length else 0
        while left > 0 and (piece := await reader.read(PIECE_BYTES_MAX)):
            left -= len(piece)
        writer.write(REFUSED)
        await writer.drain()
        writer.close()
        self.server[1].transport.abort()

    async def run(self):
        both = [asyncio.ensure_future(self.there()), asyncio.ensure_future(self.back())]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        # The other side's last bytes, unless it is gone as well.
        await asyncio.wait(both, timeout=LAST_SECONDS_MAX)
        self.reset()
        for each in both:
            each.cancel()
        await asyncio.gather(*both, return_exceptions=True)


class Link:
    def __init__(self, target):
        self.target, self.fault = target.rsplit(":", 1), "none"
        self.changed = asyncio.Condition()
        self.connections = set()

    async def wait(self, direction):
        """Until bytes of a direction may pass."""
        if self.fault == "slow":
            await asyncio.sleep(SLOW_SECONDS)
        async with self.changed:
            await self.changed.wait_for(lambda: self.fault not in ("hang", direction))

    async def fail(self, fault):
        async with self.changed:
            self.fault = fault
            self.changed.notify_all()
        if fault == "refuse":
            for connection in list(self.connections):
                connection.reset()

    async def accept(self, reader, writer):
        if self.fault == "refuse":
            writer.transport.abort()
            return
        try:
            server = await asyncio.open_connection(*self.target)
        except OSError:
            # Nothing listens there: the node is dead.
            writer.transport.abort()
            return
        connection = Connection(self, (reader, writer), server)
        self.connections.add(connection)
        with contextlib.suppress(OSError):
            await connection.run()
        self.connections.discard(connection)


async def serve():
    links, servers = {}, []
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        asked, answer = json.loads(line), None
        if asked["do"] == "forward":
            link = links[asked["name"]] = Link(asked["target"])
            servers.append(await asyncio.start_server(link.accept, asked["host"], 0))
            answer = servers[-1].sockets[0].getsockname()[1]
        else:
            await links[asked["name"]].fail(asked["fault"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(serve())
