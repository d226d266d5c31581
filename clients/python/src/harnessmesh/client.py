"""The way in: connect to a gateway, start runs, find them again."""

import json
import os
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from harnessmesh.connection import Connection
from harnessmesh.errors import InvalidError
from harnessmesh.events import Status
from harnessmesh.gen import pb
from harnessmesh.messages import message
from harnessmesh.run import Run, _new_id
from harnessmesh.tools import Tools, by_name

if TYPE_CHECKING:
    from harnessmesh.gen.harness.v1.gateway_pb2_grpc import GatewayServiceAsyncStub


class Client:
    """A connection to a gateway. Make it with `connect`; it may be used by any number of tasks of one
    event loop.

    stub: every call of the protocol, with types, for calls without a method here; `metadata()` goes with it.
    """

    def __init__(self, connection: Connection, namespace: str) -> None:
        self.namespace = namespace
        self._connection = connection

    @staticmethod
    def connect(
        address: str = "127.0.0.1:7447",
        *,
        token: str | None = None,
        tls: bool | str | os.PathLike[str] = False,
        namespace: str = "default",
        traceparent: str | Callable[[], str | None] | None = None,
        patience: float = 60.0,
        connect_timeout: float = 5.0,
    ) -> "Connecting":
        """Connects to the gateway of a mesh, as `async with Client.connect(…) as client` or as
        `client = await Client.connect(…)` with a `close` at the end.

        address: HOST:PORT or unix:PATH.
        token: a bearer token. Beyond this machine it travels with TLS only. Default: the key that a
            gateway of this user has noted for an address on this machine.
        tls: True to trust the certificate authorities that grpc trusts, or a file with those to trust.
        namespace: the namespace of runs where a call names no other.
        traceparent: W3C trace context that is sent with each call, or a function that returns the current one.
        patience: seconds for which the gateway may be out of reach before a call or an iteration fails; with
            0 nothing is retried. An attempt that has started has up to 30 s.
        connect_timeout: seconds for the first call, with all of its attempts.

        Raises, when entered or awaited: InvalidError for arguments that do not fit together,
        UnavailableError when no gateway answers, UnauthenticatedError and ForbiddenError for a token
        that is missing, unknown or not for this namespace.
        """
        return Connecting(
            lambda: Client(
                Connection(address, token=token, tls=tls, traceparent=traceparent, patience=patience), namespace
            ),
            connect_timeout,
        )

    @property
    def stub(self) -> "GatewayServiceAsyncStub":
        return self._connection.stub

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Token and trace context, for a call by `stub`."""
        return self._connection.metadata()

    async def start(
        self,
        goal: str,
        *,
        agent: pb.AgentSpec | Mapping[str, Any] | None = None,
        model: str | None = None,
        workspace: str | os.PathLike[str] = ".",
        tools: Tools = (),
        contract: pb.TaskContract | Mapping[str, Any] | None = None,
        output_schema: str | Mapping[str, Any] | None = None,
        config: pb.LoopConfig | Mapping[str, Any] | None = None,
        workflow: Iterable[str] = (),
        run_id: str | None = None,
        request_id: str | None = None,
        namespace: str | None = None,
        traceparent: str | None = None,
    ) -> Run:
        """Starts a run. When this returns the run is stored and continues, also when this process ends.

        goal: the task of the agent, as text.
        agent: the fields of an agent file.
        model: PROVIDER:NAME; takes precedence over the model of the agent.
        workspace: the folder that the agent works in, on the machine of the tool host. A relative one is
            taken from the current folder.
        tools: functions that the run may call in this process, while `events` is iterated or `result` awaited.
        contract: the outputs that must exist before the run counts as done.
        output_schema: JSON Schema of the result; `output` of the result is then JSON that fits it.
        config: numbers of the loop, such as {"stop": {"max_turns": 20}}.
        run_id: the run's name; default: derived from the request id.
        request_id: the same request sent again, also by another process, starts no second run.

        Raises InvalidError with the field that is wrong, ExistsError when another run has the name,
        PreconditionError when an executor of the workflow is not served.
        """
        own = by_name(tools)
        persona = pb.AgentSpec()
        persona.CopyFrom(message(pb.AgentSpec, "agent", agent) or persona)
        if model is not None:
            persona.model = model
        spec = pb.RunSpec(
            goal=pb.Content(inline=goal),
            agent=persona,
            workspace=os.path.abspath(workspace),
            workflow=workflow,
            config=message(pb.LoopConfig, "config", config),
            client_tools=[each.spec() for each in own.values()],
            contract=message(pb.TaskContract, "contract", contract),
            output_schema=output_schema
            if isinstance(output_schema, str)
            else json.dumps(output_schema)
            if output_schema is not None
            else "",
        )
        request = pb.StartRunRequest(
            namespace=namespace or self.namespace,
            run_id=run_id or "",
            request_id=request_id or _new_id(),
            spec=spec,
        )
        answer = await self._connection.call(self.stub.StartRun, request, traceparent=traceparent)
        return Run(self._connection, answer.namespace, answer.run_id, answer.existed, own)

    async def attach(self, run_id: str, *, tools: Tools = (), namespace: str | None = None) -> Run:
        """Attaches to an existing run, which any client may have started. Raises NotFoundError when there is none.

        tools: functions for the client tools that the run was started with. Calls that are waiting
            already are made too, as soon as `events` is iterated or `result` awaited.
        """
        own = by_name(tools)
        run = Run(self._connection, namespace or self.namespace, run_id, True, own)
        await run.info()
        return run

    async def runs(
        self, *statuses: Status | str, namespace: str | None = None, page_size: int = 100
    ) -> AsyncGenerator[pb.Run, None]:
        """Yields runs, newest first.

        statuses: only those, such as "PARKED"; none means all.
        namespace: "*" means all.
        """
        request = pb.ListRunsRequest(
            namespace=namespace or self.namespace, statuses=[_status(s) for s in statuses], page_size=page_size
        )
        while True:
            page = await self._connection.call(self.stub.ListRuns, request)
            for run in page.runs:
                yield run
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def close(self) -> None:
        """Closes the connection. Runs continue."""
        await self._connection.close()

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Connecting:
    """A connection that is about to be made: enter it with `async with`, or await it."""

    def __init__(self, make: Callable[[], Client], timeout: float) -> None:
        self._make = make
        self._timeout = timeout
        self._client: Client | None = None

    def __await__(self) -> Generator[Any, None, Client]:
        return self._open().__await__()

    async def __aenter__(self) -> Client:
        self._client = await self._open()
        return self._client

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.close()

    async def _open(self) -> Client:
        client = self._make()
        try:  # a cheap call checks address, TLS, token and namespace
            connection = client._connection
            request = pb.ListRunsRequest(namespace=client.namespace, page_size=1)
            await connection.call(client.stub.ListRuns, request, within=self._timeout)
        except BaseException:
            await client.close()
            raise
        return client


def _status(status: Status | str) -> pb.RunStatus.ValueType:
    try:
        return pb.RunStatus.Value(f"RUN_STATUS_{Status(status).value}")
    except ValueError:
        names = ", ".join(each.value for each in Status)
        raise InvalidError(
            f"statuses: unknown status {status!r}; expected one of {names}", metadata={"field": "statuses"}
        ) from None
