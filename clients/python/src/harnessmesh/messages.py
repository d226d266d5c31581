"""Messages of the protocol out of what Python programs have at hand."""

from collections.abc import Mapping
from typing import Any, TypeVar

from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message

from harnessmesh.errors import InvalidError

M = TypeVar("M", bound=Message)


def message(kind: type[M], field: str, value: M | Mapping[str, Any] | None) -> M | None:
    """The message that a mapping stands for, with the names of the proto's fields; a message as it is.

    Enum values are written with their full names, durations as "1.5s". An InvalidError names what
    does not fit.
    """
    if value is None or isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        raise InvalidError(
            f"{field}: want a mapping or a {kind.__name__}, not {type(value).__name__}", metadata={"field": field}
        )
    try:
        return ParseDict(dict(value), kind())
    except (ParseError, TypeError, ValueError) as error:
        text = " ".join(str(error).split())
        raise InvalidError(f"{field}: {text}", metadata={"field": field}) from None
