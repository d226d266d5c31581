"""Client for harnessmesh: start runs of agents, follow them, answer them, from any process.

    async with Client.connect("127.0.0.1:7447") as client:
        run = await client.start("Find out why the tests fail", model="openai:gpt-5")
        async for update in run.events():
            match update:
                case Delta(text=text):
                    print(text, end="")
                case Event(data=pb.ApprovalRequested() as asked):
                    await run.approve(asked.call_id)
                case Result() as result:
                    print(result.status, result.message)

Everything is asyncio. `pb` has all messages of the protocol.
"""

from harnessmesh.client import Client
from harnessmesh.errors import (
    ExistsError,
    ForbiddenError,
    HarnessError,
    InvalidError,
    NotFoundError,
    PreconditionError,
    TooLargeError,
    UnauthenticatedError,
    UnavailableError,
)
from harnessmesh.events import (
    Alert,
    Deliverable,
    Delta,
    Event,
    PendingCall,
    ReasoningDelta,
    Result,
    Status,
    ToolOutput,
    Update,
)
from harnessmesh.gen import pb
from harnessmesh.run import Run
from harnessmesh.tools import Tool, ToolFailed, tool

__all__ = [
    "Alert",
    "Client",
    "Deliverable",
    "Delta",
    "Event",
    "ExistsError",
    "ForbiddenError",
    "HarnessError",
    "InvalidError",
    "NotFoundError",
    "PendingCall",
    "PreconditionError",
    "ReasoningDelta",
    "Result",
    "Run",
    "Status",
    "TooLargeError",
    "Tool",
    "ToolFailed",
    "ToolOutput",
    "UnauthenticatedError",
    "UnavailableError",
    "Update",
    "pb",
    "tool",
]
