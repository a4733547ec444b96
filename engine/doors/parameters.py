"""What several commands take: paths that are made absolute at once, and `--json`."""

from __future__ import annotations

from pathlib import Path

import click

from engine.settings.paths import expanded


class AbsolutePath(click.Path):
    """A path with `~` expanded, made absolute before the work begins. Whether it exists, the engine says."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path that the text names."""
        del param, ctx
        return expanded(Path(str(value))).absolute()


PATH = AbsolutePath()
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
