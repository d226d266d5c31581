"""Start a run, see it work, and answer what it asks.

    python examples/follow.py --model openai:gpt-5 "Find out why the tests fail"
    python examples/follow.py --model script:$PWD/examples/notes.yaml "Count the lines"

Text appears while the model writes it. A call that needs an approval, and a question of the agent,
are put to you; Ctrl-D leaves the run waiting, and you can come back with --attach RUN.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path

from harnessmesh import Client, Delta, Event, HarnessError, PendingCall, Result, Run, pb

#: Commands wait for your approval, also those that the sandbox confines.
AGENT = {"tools": [{"name": "run_command", "policy": "TOOL_DECISION_ASK", "reason": "it runs commands"}]}


async def main() -> int:
    parser = argparse.ArgumentParser(description="Start a run, see it work, and answer what it asks.")
    parser.add_argument("goal", nargs="?", default="")
    parser.add_argument("--server", default="127.0.0.1:7447", metavar="HOST:PORT")
    parser.add_argument("--token-file", type=Path, help="a file with the token for the server")
    parser.add_argument("--tls-ca", metavar="FILE", help="speak TLS, and trust the authorities in this file")
    parser.add_argument("--model", help="PROVIDER:NAME")
    parser.add_argument("--workspace", default=".", help="the folder to work in; default the current one")
    parser.add_argument("--attach", metavar="RUN", help="follow a run that exists, from its start")
    given = parser.parse_args()
    if bool(given.goal) == bool(given.attach):
        parser.error("say what to do, or which run to follow with --attach RUN")
    token = given.token_file.read_text().strip() if given.token_file else None
    try:
        async with Client.connect(given.server, token=token, tls=given.tls_ca or False) as client:
            if given.attach:
                run = await client.attach(given.attach)
            else:
                run = await client.start(given.goal, model=given.model, workspace=given.workspace, agent=AGENT)
            print(f"run {run.id}", file=sys.stderr)
            return await follow(run)
    except HarnessError as error:
        print(f"follow: {error}", file=sys.stderr)
        return 1


async def follow(run: Run) -> int:
    asked: set[str] = set()
    async for update in run.events():
        match update:
            case Delta(text=text, rewinds=rewinds):
                print("\n(once more)\n" + text if rewinds else text, end="", flush=True)
            case Event(data=pb.ModelResponse()):
                print()
            case Event(data=pb.ToolCalled() as call):
                print(f"  → {call.tool} {await run.text(call.arguments)}")
            case Event(data=pb.ToolResult() as done):
                print(f"  ✓ {done.tool}  {first_line(await run.text(done.result))}")
            case Event(data=pb.ToolError() as failed):
                print(f"  ✗ {failed.tool}  {first_line(await run.text(failed.error))}")
            case Event(data=pb.ToolDenied() as denied):
                print(f"  ✗ {denied.tool}  {denied.reason}")
            case Result() as result if result.ended:
                print(f"{result.status.value} · {result.reason}: {result.message}")
                return 0 if result.accepted else 1
            case Result() as rest:
                # The run is parked and uses no process: there is time to think.
                for waiting in rest.pending:
                    if waiting.call_id in asked:
                        continue  # the answer is on its way
                    asked.add(waiting.call_id)
                    if not await answer(run, waiting):
                        print(f"{run.id} waits: {rest.message}", file=sys.stderr)
                        return 4
                if not rest.pending:
                    print(f"{run.id} waits: {rest.message}", file=sys.stderr)
                    return 4
    return 1


async def answer(run: Run, call: PendingCall) -> bool:
    """Puts a call that waits to the person; False when there is no answer."""
    if call.kind == "question":
        line = await ask(f"{call.why}\n> ")
        if line:
            await run.answer(call.call_id, line)
        return bool(line)
    if call.kind not in ("approval", "review"):
        return False  # some client's tool: that client answers
    line = await ask(f"Run {call.tool} {json.dumps(call.arguments)}? ({call.why}) [y]es, [a]lways, or why not: ")
    if line.lower() in ("y", "yes"):
        await run.approve(call.call_id, digest=call.digest)
    elif line.lower() in ("a", "always") and call.kind == "approval":
        await run.approve(call.call_id, always=True, digest=call.digest)
    elif line:
        await run.deny(call.call_id, line)
    return bool(line)


async def ask(prompt: str) -> str:
    print(prompt, end="", flush=True)
    line: str = await asyncio.to_thread(sys.stdin.readline)
    return line.strip()


def first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:100]


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
