"""The places that settings come from, read into layers of raw values: first match wins.

Order: the environment, `.env` in the working folder, config.toml. A name that nobody knows is an
error where the place is ours (config.toml, names that begin with NOCTUARY_); in a `.env`, which may
belong to another project, it is listed as ignored unless it resembles one of ours.
"""

from __future__ import annotations

import difflib
import io
import os
import re
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

PREFIX = "NOCTUARY_"
# A key of somebody else's `.env` is taken for a misspelt one of ours above this similarity:
# EMBEDDING_MODEL (.97) is, TEST_DATABASE_URL (.83) is not.
_RESEMBLES = 0.88


@dataclass(frozen=True, slots=True)
class Raw:
    """A value as its source holds it; `source` says where, in words; `base` resolves relative paths."""

    value: object
    source: str
    base: Path


@dataclass(slots=True)
class Layers:
    """What was found: raw values by field name, and what was left alone."""

    values: dict[str, Raw] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)

    def offer(self, name: str, raw: Raw) -> None:
        """Take a value unless an earlier source gave one. Empty text counts as not given."""
        if raw.value != "":
            self.values.setdefault(name, raw)


@dataclass(frozen=True, slots=True)
class Names:
    """How settings are called: field name by environment name, and the last-resort environment names."""

    fields: tuple[str, ...]
    environment: Mapping[str, str]
    fallbacks: Mapping[str, tuple[str, ...]]

    def nearest(self, name: str) -> str:
        """The real environment name that is most like a wrong one; empty when none is."""
        plain = [known for known in self.environment if not known.startswith(PREFIX)]
        prefixed = [known for known in self.environment if known.startswith(PREFIX)]
        pool = prefixed if name.startswith(PREFIX) else plain
        return _closest(name, pool, 0.6)


def read(names: Names, env: Mapping[str, str], cwd: Path, config_file: Path) -> Layers:
    """Read every source.

    Raises:
        SettingsError: a name that nobody knows, or a config.toml that cannot be read.
    """
    layers = Layers()
    _environment(layers, names, env, cwd)
    _dotenv(layers, names, cwd / ".env")
    _config(layers, names, config_file)
    for name, variables in names.fallbacks.items():
        for variable in variables:
            layers.offer(name, Raw(env.get(variable, ""), f"environment ({variable})", cwd))
    return layers


def _environment(layers: Layers, names: Names, env: Mapping[str, str], cwd: Path) -> None:
    for key in sorted(key for key in env if key.startswith(PREFIX)):
        if key not in names.environment:
            raise _unknown(key, "the environment", names.nearest(key))
    for key, name in names.environment.items():
        if key in env:
            layers.offer(name, Raw(env[key], f"environment ({key})", cwd))


def _dotenv(layers: Layers, names: Names, path: Path) -> None:
    """Read a `.env` without expanding `$` in its values. A folder of that name is not one."""
    if not os.path.isfile(path):  # noqa: PTH113 - which raises where there is no right to look
        return
    from dotenv.parser import parse_stream

    try:
        content = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        layers.ignored.append(f"{path}: cannot be read ({error})")
        return
    found: dict[str, Raw] = {}
    for binding in parse_stream(io.StringIO(content)):
        line = binding.original.line + _leading_lines(binding.original.string)
        if binding.error:
            layers.ignored.append(f"{path}:{line}: not a line of the form NAME=value")
        elif binding.key:
            # The last of several equal names holds, as every reader of such files has it.
            found[binding.key] = Raw(binding.value or "", f"{path}:{line} ({binding.key})", path.parent)
    for key, raw in found.items():
        _classify(layers, names, key, raw)
    for key, name in names.environment.items():
        if key in found:
            layers.offer(name, found[key])


def _leading_lines(statement: str) -> int:
    """The parser counts blank lines before a statement as part of it."""
    return len(statement[: len(statement) - len(statement.lstrip())].splitlines())


def _classify(layers: Layers, names: Names, key: str, raw: Raw) -> None:
    """Know a name of `.env`, refuse a misspelt one of ours, or list it as ignored."""
    place = raw.source.removesuffix(f" ({key})")
    if key in names.environment:
        return
    if key.startswith(PREFIX):
        raise _unknown(key, place, names.nearest(key))
    if near := _closest(key.upper(), names.environment, _RESEMBLES):
        raise _unknown(key, place, near)
    layers.ignored.append(f"{place}: {key} is not a setting of Noctuary")


def _config(layers: Layers, names: Names, path: Path) -> None:
    try:
        content = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{path} cannot be read: {error}.", remedy="Make it readable UTF-8 text or remove it."
        ) from error
    try:
        table: dict[str, Any] = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(
            f"{path} is not valid TOML: {error}.", remedy="Correct that line; strings need quotes."
        ) from error
    for key, value in table.items():
        place = f"{path}:{_line_of(content, key)}"
        if key not in names.fields:
            raise _unknown(key, place, _closest(key.lower(), names.fields, 0.6))
        layers.offer(key, Raw(value, place, path.parent))


def _line_of(content: str, key: str) -> int:
    """The 1-based line that sets a top-level key or opens its table; 1 when it is spelt unusually."""
    pattern = re.compile(rf"^\s*\[?\s*[\"']?{re.escape(key)}[\"']?\s*[\].=]")
    hits = (at for at, line in enumerate(content.splitlines(), start=1) if pattern.match(line))
    return next(hits, 1)


def _closest(name: str, pool: Iterable[str], cutoff: float) -> str:
    near = difflib.get_close_matches(name, list(pool), n=1, cutoff=cutoff)
    return near[0] if near else ""


def _unknown(key: str, place: str, near: str) -> SettingsError:
    meant = f"Did you mean {near}?" if near else "`noctuary config` lists the settings."
    return SettingsError(f"{key} in {place} is not a setting.", remedy=meant)
