"""A citation against the disk: same, moved, changed or gone; whole lines, and pieces of over-long ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from engine.notes import citations
from engine.notes.chunking import chunk, decode
from engine.notes.model import Citation, FreshnessState

if TYPE_CHECKING:
    from pathlib import Path

SENTENCE = "The barn owl hunts over open fields at night, number {}. "
LONG = "".join(SENTENCE.format(n) for n in range(60)).rstrip()
UNBROKEN = "".join(chr(0x4E00 + n) for n in range(4000))


def check(folder: Path, cited: Citation, disk: str | bytes) -> tuple[str, int | None, int | None]:
    """State and lines of a citation, with this on the disk."""
    (folder / "a.md").write_bytes(disk if isinstance(disk, bytes) else disk.encode())
    fresh = citations.freshness(cited)
    return str(fresh.state), fresh.line_start, fresh.line_end


def at(folder: Path, text: str, start: int = 1) -> Citation:
    return Citation(folder, "a.md", start, start + text.count("\n"), text, None, 1.0)


def pieces(folder: Path, text: str) -> list[Citation]:
    """Citations of every chunk of a text."""
    return [
        replace(at(folder, each.text, each.line_start), line_end=each.line_end)
        for each in chunk(decode(text.encode()))
    ]


@pytest.mark.parametrize(
    ("cited", "start", "disk", "expected"),
    [
        ("The limit is 10", 1, "The limit is 10\n", ("same", 1, 1)),
        ("The limit is 10", 1, "The limit is 100\n", ("changed", None, None)),
        ("The limit is 10", 1, "So: The limit is 10\n", ("changed", None, None)),
        ("The limit is 10", 1, "x\nThe limit is 10 of 20\n", ("changed", None, None)),
        ("The limit is 10", 1, f"{LONG} The limit is 10\n", ("changed", None, None)),
        ("a\nb", 1, "a\nbb\n", ("changed", None, None)),
        ("a\nb", 1, "aa\nb\n", ("changed", None, None)),
        ("a\nb", 1, "x\ny\na\nb\n", ("moved", 3, 4)),
        ("a\nb", 5, "a\nb\n", ("moved", 1, 2)),
        ("a", 4, "a\nx\nx\nx\nx\na\n", ("moved", 6, 6)),
        ("a", 3, "a\nx\nx\nx\nx\na\n", ("moved", 1, 1)),
        ("a\nb", 1, "a\r\nb\r\n", ("same", 1, 2)),
        ("a\nb", 1, "a\rb", ("same", 1, 2)),
        ("a\nb", 1, "\ufeffa\nb\n", ("same", 1, 2)),
        ("a", 9, "", ("changed", None, None)),
    ],
)
def test_lines_are_compared_as_a_whole(
    tmp_path: Path, cited: str, start: int, disk: str, expected: tuple[str, int | None, int | None]
) -> None:
    assert check(tmp_path, at(tmp_path, cited, start), disk) == expected


def test_a_file_that_is_not_there_is_gone(tmp_path: Path) -> None:
    assert citations.freshness(at(tmp_path, "a")).state is FreshnessState.GONE


@pytest.mark.parametrize("disk", [b"\xff\xfea\x00", b"a\xff", b"a\0", b"x" * (16 * 1024 * 1024 + 1)])
def test_a_file_that_is_no_text_any_more_is_changed_and_its_indexed_text_is_shown(
    tmp_path: Path, disk: bytes
) -> None:
    assert check(tmp_path, at(tmp_path, "a\nb", 3), disk) == ("changed", None, None)
    shown = citations.preview(at(tmp_path, "a\nb", 3), 8)
    assert (shown.first_line, shown.lines, shown.span) == (3, ("a", "b"), (3, 4))
    assert shown.freshness.state is FreshnessState.CHANGED


@pytest.mark.parametrize("line", [LONG, UNBROKEN, "x" * 5000, "ab " * 2000])
@pytest.mark.parametrize("above", ["", "# Owls\n\n", "# Owls\n\nshort\n", f"# {'Owls ' * 80}\n"])
def test_every_piece_of_a_long_line_is_the_same_and_moves_with_its_line(
    tmp_path: Path, line: str, above: str
) -> None:
    text = f"{above}{line}\n"
    cited = pieces(tmp_path, text)
    assert len(cited) > 2
    for each in cited:
        assert check(tmp_path, each, text) == ("same", each.line_start, each.line_end)
        moved = ("moved", each.line_start + 2, each.line_end + 2)
        assert check(tmp_path, each, f"new\n\n{text}") == moved or above == ""
        assert check(tmp_path, each, text.replace("\n", "\r\n").encode()) == (
            "same",
            each.line_start,
            each.line_end,
        )


def test_a_piece_holds_while_its_long_line_is_written_in_elsewhere_and_no_longer(tmp_path: Path) -> None:
    first, second, *_ = pieces(tmp_path, f"{LONG}\n")
    assert check(tmp_path, second, f"Before it all stands more. {LONG}\n") == ("same", 1, 1)
    assert check(tmp_path, second, f"x\n{LONG} And after.\n") == ("moved", 2, 2)
    assert check(tmp_path, first, f"{LONG} And after.\n") == ("same", 1, 1)
    end = second.text[-1]
    grown = LONG.replace(second.text, second.text[:-2] + "00" + end)
    assert check(tmp_path, second, f"{grown}\n") == ("changed", None, None)


def test_a_piece_at_no_boundary_of_another_long_line_is_changed(tmp_path: Path) -> None:
    text = "word " * 40 + "limit 10"
    cited = at(tmp_path, text)
    assert check(tmp_path, cited, f"{text}0 {LONG}\n") == ("changed", None, None)
    assert check(tmp_path, cited, f"{LONG} re{text} {LONG}\n") == ("changed", None, None)


def test_the_lines_above_a_first_piece_have_to_stand_too(tmp_path: Path) -> None:
    first, second, *_ = pieces(tmp_path, f"# Owls\n\n{LONG}\n")
    assert first.text.startswith("# Owls\n\nThe barn owl")
    assert check(tmp_path, first, f"# Owls at night\n\n{LONG}\n") == ("changed", None, None)
    assert check(tmp_path, second, f"# Owls at night\n\n{LONG}\n") == ("same", 3, 3)
    assert check(tmp_path, first, f"# Owls\n\nAnd {LONG}\n") == ("changed", None, None)
