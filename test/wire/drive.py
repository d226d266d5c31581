"""Drives runs as drive.mjs does, with the client of the Python SDK and the same arguments."""

import asyncio
import contextlib
import json
import os
import sys

import httpx2
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

workspace, model, kind, target, *rest = sys.argv[1:]


@contextlib.asynccontextmanager
async def connected(approves):
    if kind == "http":
        token = rest[1 if approves else 0]
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=120) as http:
            async with Client(streamable_http_client(target, http_client=http)) as client:
                yield client
    else:
        args = [*rest, "--approve"] if approves else rest
        server = StdioServerParameters(command=target, args=args, env=dict(os.environ))
        async with Client(stdio_client(server)) as client:
            yield client


async def tried(client, name, **given):
    result = await client.call_tool(name, given, read_timeout_seconds=120)
    return result.is_error, result.content[0].text


async def call(client, name, **given):
    failed, text = await tried(client, name, **given)
    if failed:
        raise RuntimeError(f"{name}: {text}")
    return json.loads(text)


async def main():
    seen = {"kinds": []}

    async def waiting(client, run_id):
        await call(client, "wait_run", run_id=run_id, seconds=90)
        pending = (await call(client, "list_pending", run_id=run_id))["pending"]
        seen["kinds"].append(pending[0]["call"]["kind"])
        return pending[0]["call"]

    async with connected(False) as client:
        seen["tools"] = sorted(tool.name for tool in (await client.list_tools()).tools)
        start = dict(goal="Ask first.", workspace=workspace, model=model, run_id="asks", request_id="one")
        ids = [(await call(client, "start_run", **start))["run_id"] for _ in range(2)]
        seen["once"] = ids == ["asks", "asks"] and len((await call(client, "list_runs"))["runs"]) == 1
        question = await waiting(client, "asks")
        for _ in range(2):
            await call(client, "answer", run_id="asks", call_id=question["call_id"], text="the first", request_id="two")
        approval = await waiting(client, "asks")
        decision = dict(run_id="asks", call_id=approval["call_id"], decision="once", request_id="three")
        if "preview_digest" in approval:
            decision["digest"] = approval["preview_digest"]
        _, seen["refused"] = await tried(client, "answer", **decision)
        pending = (await call(client, "list_pending", run_id="asks"))["pending"]
        seen["kinds"].append(pending[0]["call"]["kind"])
    async with connected(True) as client:
        for _ in range(2):
            await call(client, "answer", **decision)
        await call(client, "wait_run", run_id="asks", seconds=90)
        seen["status"] = await call(client, "run_status", run_id="asks")
        await call(client, "start_run", goal="Ask first.", workspace=workspace, model=model, run_id="cancelled")
        await waiting(client, "cancelled")
        for _ in range(2):
            await call(client, "cancel_run", run_id="cancelled", reason="enough", request_id="four")
        await call(client, "wait_run", run_id="cancelled", seconds=90)
        seen["cancelled"] = await call(client, "run_status", run_id="cancelled")
    print(json.dumps(seen))


asyncio.run(main())
