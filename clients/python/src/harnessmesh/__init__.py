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

from harnessmesh.client import Client as Client
from harnessmesh.errors import (
    ExistsError as ExistsError,
    ForbiddenError as ForbiddenError,
    HarnessError as HarnessError,
    InvalidError as InvalidError,
    NotFoundError as NotFoundError,
    PreconditionError as PreconditionError,
    TooLargeError as TooLargeError,
    UnauthenticatedError as UnauthenticatedError,
    UnavailableError as UnavailableError,
)
from harnessmesh.events import (
    Deliverable as Deliverable,
    Delta as Delta,
    Event as Event,
    PendingCall as PendingCall,
    Result as Result,
    Status as Status,
    Update as Update,
)
from harnessmesh.gen import pb as pb
from harnessmesh.run import Run as Run
from harnessmesh.tools import Tool as Tool, ToolFailed as ToolFailed, tool as tool
