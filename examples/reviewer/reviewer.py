"""A custom executor, in Python, which runs between turn and stopdecision.

An agent that declares that it is done, has changed files and has run nothing since, is
sent back to run what proves its work; twice at most. The executor reads the run's
conversation from the gateway; a bridge checks and commits its outcome.

    python reviewer.py --listen 127.0.0.1:7700 --gateway 127.0.0.1:7447
    harness serve --roles all,bridge --executor reviewer --target 127.0.0.1:7700
    harness run --server 127.0.0.1:7447 --workflow repair,compaction,turn,reviewer,stopdecision "…"
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal

import grpc

from harnessmesh import keys
from harnessmesh.gen.harness.v1 import (
    content_pb2,
    conversation_pb2,
    executor_pb2,
    executor_pb2_grpc,
    gateway_pb2,
    gateway_pb2_grpc,
    record_pb2,
)

CHANGES = {"write_file", "edit_file"}
PROVES = {"run_command"}
MOST = 2
ASK = (
    "Nothing was run since the last change of a file. Run what shows that your work is right "
    "(tests, the program itself), look at its output, and then call work_complete again."
)


def unproven(messages: list[conversation_pb2.Message]) -> bool:
    """Reports whether a file was changed and no command succeeded after that."""
    tools = {call.id: call.name for m in messages for call in m.tool_calls}
    open_change = False
    for m in messages:
        if m.role != conversation_pb2.ROLE_TOOL or m.is_error:
            continue
        name = tools.get(m.tool_call_id, m.tool_name)
        open_change = name in CHANGES or (open_change and name not in PROVES)
    return open_change


class Reviewer(executor_pb2_grpc.ExecutorServiceServicer):
    """Serves harness.v1.ExecutorService. Execute is repeatable: it only reads."""

    def __init__(self, address: str, gateway: gateway_pb2_grpc.GatewayServiceStub) -> None:
        self.address = address
        self.gateway = gateway

    async def Execute(
        self, request: executor_pb2.ExecuteRequest, context: grpc.aio.ServicerContext
    ) -> executor_pb2.ExecuteResponse:
        step_input = request.input
        turn = step_input.step.turn_complete
        if not turn.agent_done:
            return executor_pb2.ExecuteResponse()  # nothing to say: the step passes on
        found = keys.noted(self.address)  # a gateway on this machine requires its key
        conversation = await self.gateway.GetConversation(
            gateway_pb2.GetConversationRequest(
                namespace=step_input.namespace, run_id=step_input.run_id, version=step_input.version
            ),
            metadata=[("authorization", f"Bearer {found.key}")] if found else None,
        )
        messages = list(conversation.messages)
        asked = sum(m.content.inline == ASK for m in messages)
        if asked >= MOST or not unproven(messages):
            return executor_pb2.ExecuteResponse()
        print(json.dumps({"run": step_input.run_id, "turn": turn.turn_number, "sent_back": asked + 1}), flush=True)
        again = type(turn)()
        again.CopyFrom(turn)
        again.agent_done = False
        return executor_pb2.ExecuteResponse(
            output=executor_pb2.StepOutput(
                outcome=executor_pb2.Outcome(
                    step=record_pb2.Step(turn_complete=again),
                    appended=[conversation_pb2.Message(content=content_pb2.Content(inline=ASK))],
                )
            )
        )


async def serve(listen: str, gateway: str) -> None:
    async with grpc.aio.insecure_channel(gateway) as channel:
        server = grpc.aio.server()
        executor_pb2_grpc.add_ExecutorServiceServicer_to_server(
            Reviewer(gateway, gateway_pb2_grpc.GatewayServiceStub(channel)), server
        )
        port = server.add_insecure_port(listen)
        await server.start()
        print(json.dumps({"listening": f"{listen.rpartition(':')[0]}:{port}"}), flush=True)
        stop = asyncio.Event()
        for name in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(name, stop.set)
        await stop.wait()
        await server.stop(grace=5)


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--listen", default="127.0.0.1:7700", metavar="HOST:PORT")
    flags.add_argument("--gateway", default="127.0.0.1:7447", metavar="HOST:PORT")
    args = flags.parse_args()
    asyncio.run(serve(args.listen, args.gateway))
