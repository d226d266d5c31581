"""A server of the Python SDK: server.py stdio, or server.py http PORT."""

import asyncio
import base64
import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Image

server = MCPServer("python", version="1")


@server.tool()
def protocol(ctx: Context) -> str:
    """Returns the version of the protocol that the client speaks."""
    return f"version {ctx.protocol_version}"


@server.tool()
def add(a: int, b: int = 40) -> dict[str, int]:
    """Adds two numbers."""
    return {"sum": a + b}


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Counts, and reports its progress."""
    for i in range(to):
        await ctx.report_progress(i + 1, to, f"counted {i + 1}")
        await asyncio.sleep(0)
    return f"counted to {to}"


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("the SDK keeps this to itself")


@server.tool()
def dot() -> Image:
    """Returns an image of one pixel."""
    data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNgYGAAAAAEAAH2FzhVAAAAAElFTkSuQmCC"
    return Image(data=base64.b64decode(data), format="png")


@server.resource("notes://{day}")
def notes(day: str) -> str:
    """Notes of a day."""
    return f"the notes of {day}"


if sys.argv[1] == "http":
    server.run("streamable-http", port=int(sys.argv[2]))
else:
    server.run("stdio")
