"""The key that a gateway on this machine requires of clients, found by its address.

A gateway notes the path of its key file in a folder of its user. A note counts only while the
process of the gateway exists: after that another user may listen at the address.
"""

import ipaddress
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harnessmesh.errors import InvalidError

_KEY = re.compile(r"harness-key-[0-9a-f]{64}")
#: The largest note and key file.
_LARGEST = 4096


@dataclass(frozen=True)
class Noted:
    """The key of a gateway.

    address: where to connect without TLS. A name such as localhost may lead to another process.
    """

    address: str
    key: str


def noted(address: str, environ: Mapping[str, str] = os.environ) -> Noted | None:
    """Returns the key that a gateway of this user has noted for an address of this machine, if any.

    Raises InvalidError for a note or a key file that is damaged or that other users can access.
    """
    folder = _folder(environ)
    if folder is None:
        return None
    for name in _candidates(address):
        try:
            key = _read(folder, name)
        except (OSError, ValueError) as error:
            raise InvalidError(
                f"token: the key of the gateway at {address} cannot be used: {error}; or pass token=..."
            ) from None
        if key is not None:
            return Noted(name, key)
    return None


def _folder(environ: Mapping[str, str]) -> str | None:
    if os.name != "posix":
        return None
    config = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(config):
        if not os.path.isabs(environ.get("HOME", "")):
            return None
        config = os.path.join(environ["HOME"], ".config")
    return os.path.join(config, "harness", "keys")


def _candidates(address: str) -> list[str]:
    """Returns the addresses of notes that an address may mean. One of another machine has none."""
    if address.startswith("unix:"):
        path = address.removeprefix("unix:")
        return ["unix:" + os.path.abspath(path.removeprefix("//") if path.startswith("///") else path)]
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        return []
    number = int(port)
    if host.lower() == "localhost":
        return [f"127.0.0.1:{number}", f"[::1]:{number}"]
    try:
        ip = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return []
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    if not ip.is_loopback:
        return []
    return [f"{ip}:{number}" if ip.version == 4 else f"[{ip}]:{number}"]


def _read(folder: str, name: str) -> str | None:
    """Returns the key of a note; None if there is no note, or if its process has ended."""
    try:
        _check(folder, os.lstat(folder), stat.S_ISDIR, "700")
        note = _read_own(os.path.join(folder, name.replace("%", "%25").replace("/", "%2F")))
    except FileNotFoundError:
        return None
    lines = note.split("\n")
    if len(lines) != 3 or not os.path.isabs(lines[0]) or not lines[1].isdecimal() or lines[1] == "0" or lines[2]:
        raise ValueError(f"its note in {folder} is damaged; remove it, and restart the gateway")
    try:
        os.kill(int(lines[1]), 0)
    except (OSError, OverflowError):
        return None
    key = _read_own(lines[0]).strip()
    if not _KEY.fullmatch(key):
        raise ValueError(f"{lines[0]} has no key; remove it, and restart the gateway")
    return key


def _read_own(path: str) -> str:
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _check(path, os.fstat(file), stat.S_ISREG, "600")
        return os.read(file, _LARGEST).decode(errors="replace")
    finally:
        os.close(file)


def _check(path: str, info: os.stat_result, is_kind: Callable[[int], bool], mode: str) -> None:
    if not is_kind(info.st_mode):
        raise ValueError(f"{path} is not a regular file or folder")
    if info.st_uid != os.geteuid():
        raise ValueError(f"{path} belongs to another user")
    if info.st_mode & 0o077:
        raise ValueError(f"{path} is accessible to other users: chmod {mode} it")
