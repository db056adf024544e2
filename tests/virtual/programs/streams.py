"""Serves lines on port 9000, or asks a server 4 x 25 times from four tasks, as its argument says."""

from __future__ import annotations

import asyncio
import sys


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        writer.write(line)
        await writer.drain()
    writer.close()


async def ask(server: str, one: int) -> int:
    reader, writer = await asyncio.open_connection(server, 9000)
    right = 0
    for number in range(25):
        line = f"{one} {number}\n".encode()
        writer.write(line)
        right += await reader.readline() == line
        await asyncio.sleep(0.02)
    writer.close()
    return right


async def main() -> None:
    if len(sys.argv) > 1:
        print("right", sum(await asyncio.gather(*(ask(sys.argv[1], one) for one in range(4)))))
        return
    server = await asyncio.start_server(answer, "0.0.0.0", 9000)
    print("listening", flush=True)
    await server.serve_forever()


asyncio.run(main())
