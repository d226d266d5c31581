"""Tools that the client runs: functions that a run may call."""

import inspect
import json
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, overload

from harnessmesh.gen import pb

#: Functions that can be tools: plain or async. Plain ones run in a thread.
ToolFunction: TypeAlias = Callable[..., Any]


class ToolFailed(Exception):
    """Raised by a tool to tell the model that the call failed, in the words of the exception."""


@dataclass(frozen=True)
class Tool:
    """A function with its description for the model. Made by `tool`."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    function: ToolFunction = field(repr=False)
    reads: bool = False
    writes: bool = False
    takes_call_id: bool = False
    idempotent: bool = False
    parallel_safe: bool = False
    explores: bool = False
    destructive: bool | None = None

    def spec(self) -> pb.ToolSpec:
        """Returns the specification of the tool for a run."""
        return pb.ToolSpec(
            name=self.name,
            description=self.description,
            parameters_schema=json.dumps(self.parameters),
            origin=pb.TOOL_ORIGIN_CLIENT,
            annotations=pb.ToolAnnotations(reads=self.reads, writes=self.writes),
        )


#: Tools in the arguments of the package: tools and functions, or functions by name.
Tools: TypeAlias = Iterable[Tool | ToolFunction] | Mapping[str, Tool | ToolFunction]


@overload
def tool(function: ToolFunction, /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    reads: bool = False,
    writes: bool = False,
    idempotent: bool = False,
    parallel_safe: bool = False,
    explores: bool = False,
    destructive: bool | None = None,
) -> Callable[[ToolFunction], Tool]: ...
def tool(
    function: ToolFunction | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    reads: bool = False,
    writes: bool = False,
    idempotent: bool = False,
    parallel_safe: bool = False,
    explores: bool = False,
    destructive: bool | None = None,
) -> Tool | Callable[[ToolFunction], Tool]:
    """Turns a function into a tool, as `@tool` or `@tool(name=…)`.

    name: default the function's.
    description: its description for the model; default the function's docstring.
    parameters: JSON Schema of the arguments, an object; default made from the annotations of the
        parameters: str, int, float, bool, list[…], dict[str, …], Literal[…], … | None, Any.
    reads, writes: what it does to the world, for the rules of the agent.
    idempotent, parallel_safe, explores, destructive: more of that, which only a tool service declares;
        see ToolServiceHints.

    Arguments are passed by name. A parameter `call_id: str` is not shown to the model: it receives
    the id of the call, the same when the call is made again after a crash.

    The returned value is the result: text unchanged, anything else as JSON. An exception is an error,
    whose text the model receives.

    Raises TypeError when a parameter has no annotation that can be a schema.
    """

    def make(function: ToolFunction) -> Tool:
        own_name = name or str(getattr(function, "__name__", ""))
        signature = inspect.signature(function)
        return Tool(
            name=own_name,
            description=description or inspect.getdoc(function) or "",
            parameters=parameters if parameters is not None else _schema(own_name, function, signature),
            function=function,
            reads=reads,
            writes=writes,
            takes_call_id="call_id" in signature.parameters,
            idempotent=idempotent,
            parallel_safe=parallel_safe,
            explores=explores,
            destructive=destructive,
        )

    return make if function is None else make(function)


def by_name(tools: Tools) -> dict[str, Tool]:
    """Returns the tools by name. Raises TypeError for a duplicate name."""
    named: dict[str, Tool] = {}
    if isinstance(tools, Mapping):
        for key, entry in tools.items():
            named[key] = entry if isinstance(entry, Tool) else tool(name=key)(entry)
            if named[key].name != key:
                raise TypeError(f"tools: the tool {named[key].name} is listed as {key}")
        return named
    for entry in tools:
        made = entry if isinstance(entry, Tool) else tool(entry)
        if made.name in named:
            raise TypeError(f"tools: duplicate name {made.name}")
        named[made.name] = made
    return named


def _schema(name: str, function: ToolFunction, signature: inspect.Signature) -> dict[str, Any]:
    hints = typing.get_type_hints(function)
    properties, required = {}, []
    for parameter in signature.parameters.values():
        if parameter.name == "call_id":
            continue
        where = f"tool {name}: parameter {parameter.name}"
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"{where} cannot be passed by name; pass parameters=, a JSON Schema")
        if parameter.name not in hints:
            raise TypeError(f"{where} has no annotation; add one, or pass parameters=, a JSON Schema")
        properties[parameter.name] = _type(where, hints[parameter.name])
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_SIMPLE: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def _type(where: str, hint: Any) -> dict[str, Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return {}
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_type(where, each) for each in arguments]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if hint is list or origin is list:
        return {"type": "array", **({"items": _type(where, arguments[0])} if arguments else {})}
    if hint is dict or (origin is dict and arguments[0] is str):
        return {"type": "object", **({"additionalProperties": _type(where, arguments[1])} if arguments else {})}
    raise TypeError(f"{where}: unsupported annotation {hint}; pass parameters=, a JSON Schema")
