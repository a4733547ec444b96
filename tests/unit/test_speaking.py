"""No part of the product speaks past the doors: what is shown or printed goes where text is made safe.

The program's own tree is read, so that new code keeps to it. Where a rule has an exception, it stands here with its
reason.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(file for part in ("engine", "tui", "prompts") for file in (ROOT / part).rglob("*.py"))

ALLOWED = {
    "engine/doors/output.py": {"click.echo", "click.confirm"},  # what a command says and asks
    "engine/doors/progress.py": {"click.progressbar"},  # onto a stream that lets a bar's own codes pass
    "engine/doors/mcp/wire.py": {"os.write"},  # the protocol, on a descriptor that nobody else has
    "engine/notes/listening.py": {"sys.stdout.write"},  # JSON to the process that started it
    "tui/__main__.py": {"sys.stderr.write"},  # before there is anything to import
    "tui/driver.py": {"sys.__stdout__"},  # the screen itself, behind tui.painting
    "tui/editor.py": {"sys.__stdout__", "sys.__stderr__"},  # lent to the editor
    "tui/widgets/label.py": {"textual.widgets.Static"},
    "tui/widgets/line_input.py": {"textual.widgets.Input"},
}
HARMLESS = {"isatty", "fileno", "encoding", "flush"}
"""What may be asked of a standard stream anywhere: none of it writes."""

FORBIDDEN_CALLS = {
    "print", "input", "breakpoint",
    "os.write", "os.writev", "os.system", "logging.basicConfig", "logging.StreamHandler", "logging.lastResort",
    "traceback.print_exc", "traceback.print_exception", "traceback.print_stack", "warnings.showwarning",
    *(f"click.{name}" for name in (
        "echo", "secho", "style", "echo_via_pager", "prompt", "confirm", "progressbar", "clear", "pause", "edit"
    )),
}  # fmt: skip
FORBIDDEN_METHODS = {
    "notify": "a toast parses markup: use a flash",
    "from_markup": "text of others is never markup",
    "from_ansi": "text of others holds no codes",
    "begin_capture_print": "nothing is printed",
    "panic": "it prints the values of variables",
}
FORBIDDEN_NAMES = {"border_title", "border_subtitle", "tooltip", "sub_title", "loading"}
"""Attributes of widgets that Textual parses as markup, or that keep the line busy."""

WIDGETS = {"Input", "ContentSwitcher", "Static"}
"""What is taken of Textual's widgets. Only `Label` and `LineInput` may be made of the first and the last."""


def dotted(node: ast.expr) -> str:
    """`sys.stdout.write` of such an expression; empty for another one."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        above = dotted(node.value)
        return f"{above}.{node.attr}" if above else ""
    return ""


def offences(source: str, file: str = "tui/new.py") -> list[str]:
    """What in a file speaks past the doors, each with its line."""
    allowed = ALLOWED.get(file, set())
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            found += [(node.lineno, each) for each in _calls(node)]
        if isinstance(node, ast.ClassDef):
            found += [
                (node.lineno, f"textual.widgets.{base}")
                for base in map(dotted, node.bases)
                if base in WIDGETS
            ]
        if isinstance(node, ast.ImportFrom) and node.module == "textual.widgets":
            found += [
                (node.lineno, f"the widget {each.name}") for each in node.names if each.name not in WIDGETS
            ]
        if isinstance(node, ast.ImportFrom) and node.module in {"rich", "rich.console", "rich.markup", "sys"}:
            found += [
                (node.lineno, f"{each.name} of {node.module}")
                for each in node.names
                if each.name != "Console"
            ]
        if isinstance(node, ast.Attribute):
            found += [(node.lineno, each) for each in _attributes(node)]
    return [f"{file}:{line}: {what}" for line, what in found if what not in allowed]


def _calls(node: ast.Call) -> list[str]:
    name = dotted(node.func)
    found = [name] if name in FORBIDDEN_CALLS else []
    if name in {"Static", "Input"}:
        found.append(f"textual.widgets.{name}")
    if isinstance(node.func, ast.Attribute) and node.func.attr in FORBIDDEN_METHODS:
        found.append(f"{node.func.attr}: {FORBIDDEN_METHODS[node.func.attr]}")
    for keyword in node.keywords:
        plain = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        if keyword.arg == "markup" and not plain:
            found.append("markup that is not off")
    return found


def _attributes(node: ast.Attribute) -> list[str]:
    name = dotted(node)
    found = [f"the attribute {node.attr}"] if node.attr in FORBIDDEN_NAMES else []
    if name in {"sys.__stdout__", "sys.__stderr__"}:
        found.append(name)
    stream, _, what = name.rpartition(".")
    if stream in {"sys.stdout", "sys.stderr"} and what not in HARMLESS:
        found.append(name)
    return found


def test_every_part_of_the_product_speaks_through_its_door() -> None:
    assert len(FILES) > 150
    told = [
        each
        for file in FILES
        for each in offences(file.read_text(encoding="utf-8"), file.relative_to(ROOT).as_posix())
    ]
    assert told == []


def test_no_exception_is_there_for_nothing() -> None:
    for file, allowed in ALLOWED.items():
        source = (ROOT / file).read_text(encoding="utf-8")
        used = {each.rpartition(": ")[2] for each in offences(source, f"./{file}")}
        assert allowed <= used, f"{file} does not use {allowed - used}"


@pytest.mark.parametrize(
    "source",
    [
        "print(error)",
        "click.echo(path)",
        "click.secho(path, fg='red')",
        "sys.stdout.write(name)",
        "sys.stderr.buffer.write(name)",
        "print(name, file=sys.__stderr__)",
        "from sys import stdout",
        "os.write(1, name)",
        "logging.basicConfig()",
        "handler = logging.StreamHandler()",
        "self.app.notify(str(error))",
        "self.border_title = path",
        "widget.tooltip = path",
        "Static(path)",
        "class Title(Static): pass",
        "class Line(Input): pass",
        "from textual.widgets import DataTable",
        "from rich import print",
        "Content.from_markup(text)",
        "Label(text, markup=True)",
        "Label(text, markup=wanted)",
        "traceback.print_exc()",
    ],
)
def test_code_that_speaks_past_the_doors_is_found(source: str) -> None:
    assert offences(source)
