"""The settings: one frozen object, each value with the place it came from.

Order of the sources: the environment, `.env` in the working folder, config.toml in the configuration
folder, the default. Names that knowman also has are taken as they are; every setting can be given
as NOCTUARY_<NAME> too, which wins over the plain name. In config.toml the names are in lower case.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from engine.errors import SettingsError

from . import parsing, sources
from .answering import Answering
from .keys import refuse_unknown
from .parsing import mask
from .paths import Paths
from .remembering import Remembering
from .spec import SPEC, Spec, setting

__all__ = ["Paths", "SettingRow", "Settings", "mask"]

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting for `noctuary config`. `value` is what holds, `default` what would if nothing were
    given: both as text in which secrets are masked.
    """

    name: str
    variable: str
    value: str
    source: str
    doc: str
    default: str = ""


@dataclass(frozen=True)
class Settings(Answering, Remembering):
    """Every setting of this version. Make one with `load`, or directly in tests."""

    database_url: str | None = setting(
        None,
        parsing.database_url,
        "a PostgreSQL address such as postgresql://user:password@host:5432/name, or the word embedded",
        "The PostgreSQL server (15 or later, pgvector 0.7 or later). Unset or `embedded`: a server of "
        "our own, kept in the data folder.",
        plain=True,
        unset=parsing.EMBEDDED,
    )
    corpus_path: tuple[Path, ...] = setting(
        (),
        parsing.folders(os.pathsep),
        f"one folder, or several separated by '{os.pathsep}'",
        "Folders of notes that are added when the program starts. In config.toml a list may be given.",
        plain=True,
    )
    embeddings_provider: str = setting(
        "bundled",
        parsing.choice("bundled", "ollama", "sentence-transformers", "multilingual"),
        "bundled, ollama, sentence-transformers or multilingual",
        "Where the vectors of passages are made.",
        plain=True,
    )
    embeddings_model: str | None = setting(
        None,
        parsing.text,
        "the name of a model that the provider has, or unset",
        "The model of the provider. Unset: the provider's own default.",
        plain=True,
        unset="the provider's own",
    )
    ollama_url: str = setting(
        "http://localhost:11434",
        parsing.http_url,
        "an address such as http://localhost:11434",
        "Where Ollama listens.",
        plain=True,
    )
    retrieval_default_k: int = setting(
        3,
        parsing.integer(1, 200),
        "a whole number from 1 to 200",
        "How many citations a search gives when it does not say.",
        plain=True,
    )
    retrieval_max_distance: float | None = setting(
        None,
        parsing.number(0, 2),
        "a number from 0 (the same) to 2 (opposite)",
        "The largest cosine distance at which a passage still answers. Unset: the model's own distance.",
        plain=True,
        unset="the model's own",
    )
    watch: str = setting(
        "auto",
        parsing.choice("auto", "events", "polling"),
        "auto, events or polling",
        "How changes on the disk are noticed. auto: by events, and by polling where events cannot be had.",
    )
    poll_interval: float = setting(
        5.0,
        parsing.number(0.1, 3600),
        "seconds, from 0.1 to 3600",
        "Seconds between two looks at a folder that is watched by polling.",
    )
    reconcile_interval: float = setting(
        600.0,
        parsing.number(1, 86400),
        "seconds, from 1 to 86400",
        "Seconds between two full comparisons of disk and index while a folder is watched.",
    )
    lease_seconds: float = setting(
        60.0,
        parsing.number(0.1, 3600),
        "seconds, from 0.1 to 3600",
        "Seconds after which a job whose worker gave no sign of life is taken by another.",
    )
    editor: str = setting(
        "",
        parsing.command,
        "a command such as vim, or code --wait",
        "The editor that opens a citation. Unset: $VISUAL, then $EDITOR, then vi or nano.",
        fallbacks=("VISUAL", "EDITOR"),
        unset="$VISUAL, $EDITOR, vi or nano",
    )
    log_level: str = setting(
        "info",
        parsing.choice("debug", "info", "warning", "error"),
        "debug, info, warning or error",
        "The least important message that the log keeps.",
    )
    traces: bool = setting(
        default=True,
        parse=parsing.boolean,
        expected="yes or no",
        doc="Whether searches and asks are kept in the database, for the Log pane and `noctuary traces`.",
    )
    reduced_repaint: bool = setting(
        default=False,
        parse=parsing.boolean,
        expected="yes or no",
        doc="Fewer updates of the screen, for slow lines.",
    )
    keys: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType({}),
        metadata={
            SPEC: Spec(
                "Other keys for actions: the id of a binding and its keys.",
                'a table in config.toml such as [keys] with lines like list.copy = "y,C"',
                parsing.keymap,
            )
        },
    )
    paths: Paths = field(default_factory=lambda: Paths.of(os.environ))
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)
    ignored: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def load(cls, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Settings:
        """Read every source; `env` and `cwd` stand in for the process's own.

        Raises:
            SettingsError: a name is unknown or a value invalid.
        """
        env = os.environ if env is None else env
        cwd = Path.cwd() if cwd is None else cwd
        paths = Paths.of(env)
        layers = sources.read(_names(), env, cwd, paths.config_file)
        values: dict[str, Any] = {name: _parsed(name, raw) for name, raw in layers.values.items()}
        if "keys" in values:
            refuse_unknown(values["keys"], layers.values["keys"].source)
        return cls(
            **values,
            paths=paths,
            sources={name: raw.source for name, raw in layers.values.items()},
            ignored=tuple(layers.ignored),
        )

    @property
    def keymap(self) -> Mapping[str, str]:
        """Binding id to keys, as remapped by the user."""
        return self.keys

    def source(self, name: str) -> str:
        """Where a setting's value came from."""
        return self.sources.get(name, DEFAULT)

    def rows(self) -> list[SettingRow]:
        """Every setting with its value and source, secrets masked."""
        return [self._row(name, spec) for name, spec in _SPECS.items()]

    def _row(self, name: str, spec: Spec) -> SettingRow:
        default = spec.unset or _shown(_default(name))
        value = _shown(getattr(self, name)) or (self._editor_found() if name == "editor" else default)
        if spec.secret and getattr(self, name):
            value = "***"
        return SettingRow(name, variable(name), value, self.source(name), spec.doc, default)

    def _editor_found(self) -> str:
        try:
            return " ".join(self.editor_command())
        except SettingsError:
            return "none is installed"

    @cached_property
    def cautions(self) -> tuple[str, ...]:
        """Sentences on values that are valid and may still surprise."""
        source = self.source("database_url")
        if self.database_url and "(DATABASE_URL)" in source:
            kind = "file" if source.startswith("/") else "variable"
            caution = (
                f"The database is {mask(self.database_url)}, named by {source}. If that {kind} belongs to "
                "another program, set NOCTUARY_DATABASE_URL=embedded."
            )
            return (caution,)
        return ()

    def editor_command(self) -> tuple[str, ...]:
        """The editor as an argument vector.

        Raises:
            SettingsError: none is set and neither vi nor nano is installed.
        """
        if self.editor:
            return tuple(shlex.split(self.editor))
        for name in ("vi", "nano"):
            if shutil.which(name):
                return (name,)
        raise SettingsError("No editor is known.", remedy="Set $EDITOR, or editor in config.toml.")


# Inherited fields come last, as the least are in want of them.
_SPECS: dict[str, Spec] = {
    item.name: item.metadata[SPEC]
    for item in sorted(fields(Settings), key=lambda item: item.name not in Settings.__annotations__)
    if SPEC in item.metadata
}


def variable(name: str) -> str:
    """The environment variable by which a setting is best known."""
    return name.upper() if _SPECS[name].plain else f"{sources.PREFIX}{name.upper()}"


def example() -> str:
    """A config.toml in which every setting is explained and left at its default."""
    blocks = [f"# {sources.PREFIX}<NAME> in the environment or in .env wins over this file.\n"]
    for name, spec in _SPECS.items():
        if name == "keys":
            continue
        blocks.append(
            f"# {spec.doc}\n# Expected: {spec.expected}.\n# {name} = {_toml(getattr(Settings, name))}\n"
        )
    blocks.append(f'# {_SPECS["keys"].doc}\n# [keys]\n# list.copy = "y,C"\n')
    return "\n".join(blocks)


def _names() -> sources.Names:
    """NOCTUARY_ names come first, so that they win over plain ones of the same source."""
    environment = {f"{sources.PREFIX}{name.upper()}": name for name in _SPECS if name != "keys"}
    environment |= {name.upper(): name for name, spec in _SPECS.items() if spec.plain}
    fallbacks = {name: spec.fallbacks for name, spec in _SPECS.items() if spec.fallbacks}
    return sources.Names(tuple(_SPECS), environment, fallbacks)


def _parsed(name: str, raw: sources.Raw) -> object:
    """The value of a setting, or the sentence that says what is wrong with it."""
    spec = _SPECS[name]
    try:
        value = spec.parse(raw.value, raw.base)
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        shown = "***" if spec.secret else mask(repr(raw.value))
        raise SettingsError(
            f"{name} is {shown} (from {raw.source}), which is not valid.",
            remedy=f"Expected: {spec.expected}.",
        ) from error
    return MappingProxyType(value) if isinstance(value, dict) else value


def _default(name: str) -> object:
    return getattr(Settings, name, None)  # a table has no default of the class, and none to show


def _shown(value: object) -> str:
    if value in (None, "", ()):
        return ""
    if isinstance(value, tuple):
        return os.pathsep.join(str(part) for part in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{binding} = {keys}" for binding, keys in value.items())
    return mask(str(value))


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    return "[]" if value == () else f'"{value or ""}"'
