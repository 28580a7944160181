"""Object storage addresses in command arguments.

Inputs are copied to this machine before the command starts. Outputs are uploaded when it ends, and for a run
also while it is in progress. The commands themselves only see paths. An address for any other argument is
refused, so that it never becomes a folder called `s3:`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aigo_bridge.access.display_paths import SHOWN
from aigo_bridge.access.object_addresses import SCHEMES, is_address, is_collapsed, parse
from aigo_bridge.cli.options import CommandAddresses
from aigo_bridge.cli.terminal import clean_streams, name_of, note, printable
from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError, UsageError
from aigo_bridge.exit_codes import ExitCode
from aigo_bridge.importing.lakes import LAKE_LOG, is_lake, lake_part
from aigo_scale.lake.command import imports_to_lake, is_far_lake, take_lake
from aigo_scale.places import BY_TABLES, LONG, OUTPUTS, REFUSED, Role, is_path, role_of

if TYPE_CHECKING:
    from aigo_bridge.access.object_addresses import Address
    from aigo_scale.storage.leases import Lease
    from aigo_scale.storage.mirror import StorageMirror


@dataclass
class RemoteAddresses:
    """Addresses of one command."""

    verb: str = ""
    words: list[tuple[str, Role, Address]] = field(default_factory=list)
    """Parameter name, role of the address, and the address."""
    mirror: StorageMirror | None = None
    leases: list[Lease] = field(default_factory=list)
    lakes: int = 0
    """Number of local lakes whose results were extracted."""
    into_lake: bool = False
    """Whether the command imports into a lake. In that case each process copies its own inputs."""
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def of(self, *roles: Role) -> list[Address]:
        """Return the addresses with these roles."""
        return [address for _, role, address in self.words if role in roles]


@contextlib.contextmanager
def _ended(places: RemoteAddresses) -> Iterator[None]:
    with places.stack:
        try:
            yield
        finally:
            if places.mirror is not None:
                _end(places)


@contextlib.contextmanager
def local_paths(context: Any, typed: Mapping[str, Any]) -> Iterator[None]:
    """Give the parameters of a command local paths instead of addresses, for the time of the block.

    Args:
        context: Click context of the command.
        typed: parameter name → one text, or several.

    Raises:
        UsageError: an address is not valid or not supported for its parameter.
    """
    places = RemoteAddresses(context.info_name)
    places.into_lake = places.verb == "import" and imports_to_lake(context.params)
    problems: list[str] = []

    def local(parameter: Any, value: Any, text: Any) -> Any:
        """Return the value of a parameter, with a local path if its text is an address."""
        if isinstance(text, list | tuple):
            return [local(parameter, *pair) for pair in zip(value, text, strict=True)]
        try:
            path = _local(places, text, parameter) if isinstance(text, str) else text
        except UsageError as error:
            problems.append(str(error))
            return value
        return value if path == text else type(value)(path)

    with _ended(places):
        for parameter in context.command.params:
            name = parameter.name
            if typed.get(name):
                context.params[name] = local(parameter, context.params[name], typed[name])
        if problems:
            raise UsageError("\n".join(problems), code=Code.WRONG_ADDRESS)
        if places.words:
            _take(places, context.params)
        yield


def _local(places: RemoteAddresses, word: str, parameter: Any) -> str:
    """Return a value with an address replaced by the path of its copy."""
    role = role_of(places.verb, parameter)
    if "://" not in word:
        if role == "results" and is_lake(word):
            return _of_lake(places, word)
        if is_collapsed(word) and role is not None:
            raise UsageError(
                f"found {word!r}, which looks like an address; if it is a path, put ./ in front",
                code=Code.WRONG_ADDRESS,
            )
        return word
    front, text = _value(word, parameter)
    scheme = text.partition("://")[0].lower()
    name = next((name for name in parameter.opts if name.startswith("--")), None)
    shown = "" if name is None else f"{name}: "
    _refuse_script(text, shown)
    if role is None:
        if scheme in SCHEMES and is_address(text):
            reason = REFUSED.get(places.verb, {}).get(parameter.name)
            if reason is not None or is_path(parameter):
                raise UsageError(
                    f"{shown}found {text!r}, expected a local path" + (f": {reason}" if reason else ""),
                    code=Code.WRONG_ADDRESS,
                )
        return word
    if scheme not in SCHEMES and role not in OUTPUTS:
        return word
    if not is_address(text):
        return word
    text, hash_sign, key = text.partition("#") if role == "task" else (text, "", "")
    try:
        address = parse(text)
    except UsageError as error:
        raise UsageError(f"{shown}{error}", code=Code.WRONG_ADDRESS) from error
    if _stays(places, parameter.name, role):
        _check_package(address)
        return word
    if address.is_pattern and role not in ("results", "proved results", "any"):
        raise UsageError(f"{shown}found the pattern {text!r}, expected one address", code=Code.WRONG_ADDRESS)
    _check_package(address)
    taken = _of_far_lake(places, address) if role == "results" else None
    if taken is not None:
        return taken
    mirror = _mirror(places)
    places.words.append((parameter.name, role, address))
    return f"{front}{mirror.path(address)}{hash_sign}{key}"


def _refuse_script(text: str, shown: str) -> None:
    if text.startswith(tuple(f"scripted/{start}://" for start in SCHEMES)):
        raise UsageError(
            (
                f"{shown}found {text!r}, but the file of a scripted model must be local; copy it "
                "to this machine"
            ),
            code=Code.WRONG_ADDRESS,
        )


def _stays(places: RemoteAddresses, parameter: str, role: Role) -> bool:
    """Return whether an address remains unchanged because the lake import copies it."""
    return role == "lake" or (places.into_lake and parameter in ("logs", "out"))


def _mirror(places: RemoteAddresses) -> StorageMirror:
    if places.mirror is None:
        from aigo_scale.storage.mirror import StorageMirror

        places.mirror = StorageMirror()
        places.stack.callback(places.mirror.close)
        places.stack.enter_context(clean_streams())
    return places.mirror


def _of_lake(places: RemoteAddresses, location: str) -> str:
    """Return the path of a local lake's results or tables."""
    if places.verb in BY_TABLES:
        return location
    mirror = _mirror(places)
    places.lakes += 1
    folder = mirror.folder / "lakes" / str(places.lakes)
    SHOWN[str(folder)] = location.rstrip("/")
    places.stack.callback(SHOWN.pop, str(folder), None)
    return str(take_lake(location, folder))


def _of_far_lake(places: RemoteAddresses, address: Address) -> str | None:
    """Return the path of a remote lake's results or tables; `None` if the address is not a lake."""
    if address.is_pattern:
        return None
    lake = parse(lake_part(str(address)))
    if not is_far_lake(lake):
        return None
    mirror = _mirror(places)
    if places.verb in BY_TABLES:
        # An empty folder marks the address as a lake.
        mirror.path(lake).joinpath(LAKE_LOG).mkdir(parents=True, exist_ok=True)
        return str(mirror.path(address))
    return str(take_lake(str(address), mirror.path(address)))


def _check_package(address: Address) -> None:
    from aigo_bridge.access.object_addresses import require_package

    require_package(address.scheme)


def _value(word: str, parameter: Any) -> tuple[str, str]:
    """Split `KEY=VALUE` into the value and the text before it."""
    key, equals, value = word.partition("=")
    is_pair = "=" in str(parameter.metavar or "") and equals and "://" not in key
    return (f"{key}=", value) if is_pair else ("", word)


# Copies


def _take(places: RemoteAddresses, params: Mapping[str, Any]) -> None:
    """Copy all inputs of a command, and lock its output folders."""
    from aigo_scale.storage.continuous_upload import kept

    mirror = places.mirror
    assert mirror is not None
    outputs = [
        _output(address, params) if role == "out folder" else address
        for _, role, address in places.words
        if role in OUTPUTS
    ]
    folders = [_output(address, params) for address in places.of("out folder")]
    if places.verb in LONG:
        leased = [folder for folder in folders if folder.scheme.keeps_leases]
        places.leases = places.stack.enter_context(kept(mirror, leased, _note))
    besides = tuple(output.key for output in outputs)
    root = next(iter(places.of("root")), None)
    if root is not None:
        mirror.take_folder(root, besides=besides)
    for _, role, address in places.words:
        match role:
            case "file":
                mirror.take_file(address)
            case "folder":
                mirror.take_folder(address)
                _forget_if_empty(mirror.path(address))
            case "task" if root is None or not address.key.startswith(f"{root.key}/"):
                _take_task(mirror, address, besides)
            case "any":
                if address.is_pattern or not mirror.take_file(address):
                    mirror.take_folder(address)
                    _forget_if_empty(mirror.path(address))
            case "results":
                _take_results(mirror, address)
            case "proved results":
                _take_proved_results(mirror, address)
            case "result" | "beside":
                _take_result(mirror, address)
                if role == "beside":
                    mirror.open_target(mirror.path(address).parent)
            case "out file" | "out folder":
                _open_output(places, role, address, params)
            case _:
                pass


def _open_output(places: RemoteAddresses, role: Role, address: Address, params: Mapping[str, Any]) -> None:
    """Prepare an output for upload, and copy its existing content."""
    mirror = places.mirror
    assert mirror is not None
    if role == "out folder":
        address = _output(address, params)
        mirror.take_folder(address)
        _forget_if_empty(mirror.path(address))
        mirror.open_target(mirror.path(address))
        return
    if not mirror.take_file(address) and places.verb == "convert":
        mirror.take_folder(address)  # the address can also be a folder
        _forget_if_empty(mirror.path(address))
    folder = mirror.path(address).parent
    folder.mkdir(parents=True, exist_ok=True)
    mirror.open_target(folder)


def _output(address: Address, params: Mapping[str, Any]) -> Address:
    """Return the output folder. A shard has a separate one."""
    shard = params.get("shard")
    if not shard:
        return address
    from aigo_bridge.plan.shards import parse_shard

    return address.below(parse_shard(shard).folder)


def _forget_if_empty(folder: Path) -> None:
    """Remove an empty folder, so that the command creates it as it would a local one."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def _take_task(mirror: StorageMirror, address: Address, besides: tuple[str, ...]) -> None:
    """Copy the folder of a task file, or a task folder."""
    from aigo_scale.storage.objects import look

    folder = address if look(address) is None else address.parent
    mirror.take_folder(folder, besides=besides)
    _forget_if_empty(mirror.path(folder))


def _take_results(mirror: StorageMirror, address: Address) -> None:
    """Copy a result, all results that match a pattern, or the results in a folder. For an evaluation, and for
    a run file that links results, also copy subfolders.
    """
    from aigo_bridge.results.sources import EVALUATION, is_result

    if address.is_pattern:
        mirror.take_folder(address)
        return
    if _is_run_file(address.name):
        mirror.take_folder(address.parent)
        return
    if mirror.take_file(address):
        if address.name == EVALUATION:
            mirror.take_folder(address.parent, wanted=is_result)
        return
    is_evaluation = mirror.take_file(address.below(EVALUATION))
    if mirror.take_folder(address, wanted=_is_run_file, depth=1):
        mirror.take_folder(address)  # A run file may link results anywhere in its folder.
    else:
        mirror.take_folder(address, wanted=is_result, depth=None if is_evaluation else 1)
    _forget_if_empty(mirror.path(address))


def _take_proved_results(mirror: StorageMirror, address: Address) -> None:
    """Copy results with the files that prove them."""
    if not address.is_pattern and not _is_run_file(address.name):
        if mirror.take_file(address):
            _take_result(mirror, address)
            return
        mirror.take_folder(address, depth=1)
    _take_results(mirror, address)


def _is_run_file(name: str) -> bool:
    """Return whether a file may be a run file, or `FILE#KEY` for one of its results."""
    return name.partition("#")[0].endswith((".yaml", ".yml"))


def _take_result(mirror: StorageMirror, address: Address) -> None:
    """Copy a result with the files next to it that share its name."""
    stem = address.name.partition(".")[0]
    folder = address.parent
    mirror.take_folder(folder, wanted=lambda key: key.rpartition("/")[2].startswith(f"{stem}."), depth=1)


def _end(places: RemoteAddresses) -> None:
    """Upload the outputs of a command. If this fails, keep them on this machine."""
    from aigo_bridge.cli.error_handling import reported

    mirror = places.mirror
    assert mirror is not None
    if not mirror.has_changes:
        return
    with reported(ExitCode.FAILED):
        try:
            if not all(lease.is_sole for lease in places.leases):
                raise UsageError(
                    "another process is writing to the same place; no file was uploaded",
                    code=Code.PLACE_IN_USE,
                )
            mirror.publish()
        except (BridgeError, KeyboardInterrupt) as error:
            rescue = mirror.keep()
            if rescue is None:
                raise
            reason = "the upload was stopped" if isinstance(error, KeyboardInterrupt) else str(error)
            raise UsageError(
                f"some files were not uploaded: {reason}; they are in {str(rescue)!r}, sorted by "
                "bucket; upload them with the tool of the storage",
                code=Code.FAILED_STORAGE,
            ) from error


def _note(text: str) -> None:
    note(f"{name_of(printable(text))}")


COMMAND_ADDRESSES = CommandAddresses(local_paths)
"""Hook `addresses`."""
