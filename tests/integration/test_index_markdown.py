"""Every Markdown input that broke other programs, from the file on the disk to the citation."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from engine.notes.model import Mode

if TYPE_CHECKING:
    from tests.integration.vault import Vault

LONG = "filler " * 42_000 + "needle " + "filler " * 500
"""One line of 300 KB."""

# What stands in the file, what is asked, the lines that must be cited, the headings above them.
INPUTS = {
    "a mark before the first heading": ("\ufeff# Owls\n\nneedle\n", (1, 3), ("Owls",)),
    "a fence that is never closed": ("# Owls\n\n```py\ncode\n\nmore\n\nneedle\n", (1, 8), ("Owls",)),
    "a fence of tildes": ("# Owls\n\n~~~\n# no heading\nneedle\n~~~\n", (1, 6), ("Owls",)),
    "a fence of four": ("# Owls\n\n````\n```\n# no\n```\nneedle\n````\n", (1, 8), ("Owls",)),
    "a fence in a list": (
        "# Owls\n\n- item\n\n  ```sh\n  # no heading\n  needle\n  ```\n",
        (1, 8),
        ("Owls",),
    ),
    "a comment in a fence": ("# Owls\n\n```sh\n# needle\n```\n", (1, 5), ("Owls",)),
    "closing hashes": ("# Owls #\n\n## Food ##\n\nneedle\n", (1, 5), ("Owls", "Food")),
    "a heading two levels up": ("# A\n\n### C\n\ndeep\n\n# B\n\nneedle\n", (7, 9), ("B",)),
    "text before the first heading": ("needle\n\n# Owls\n\nother\n", (1, 1), ()),
    "no heading at all": ("needle stands alone\n", (1, 1), ()),
    "a line of 300 KB": (LONG, (1, 1), ()),
    "CRLF": ("# Owls\r\n\r\nneedle\r\n", (1, 3), ("Owls",)),
    "lone CR": ("# Owls\r\rneedle\r", (1, 3), ("Owls",)),
    "mixed ends": ("# Owls\r\n\nx\r\rneedle\n", (1, 5), ("Owls",)),
    "no final newline": ("# Owls\n\nneedle", (1, 3), ("Owls",)),
    "front matter that is not YAML": ("---\n: [needle {\n---\n\nother\n", (1, 5), ()),
}


async def test_every_input_is_found_at_its_lines_under_its_headings(vault: Vault) -> None:
    words = {name: "needle" + "abcdefghijklmnopqrst"[number] for number, name in enumerate(INPUTS)}
    for name, (text, _, _) in INPUTS.items():
        vault.write(f"{name}.md", text.replace("needle", words[name]))
    await vault.index()
    assert await vault.failures() == {}
    assert await vault.in_index() == vault.on_disk()
    for name, (_, (start, end), heading) in INPUTS.items():
        citations = (await vault.notes.search(words[name], mode=Mode.KEYWORD)).citations
        assert len(citations) == 1, name
        (citation,) = citations
        assert citation.path == f"{name}.md"
        assert start <= citation.line_start <= citation.line_end <= end, name
        assert citation.heading == heading, name
        assert words[name] in citation.text, name
        assert str(await vault.notes.freshness(citation)) == "same", name


NAMES = (
    [
        "🐘.md",
        "{.md",
        "[.md",
        "*.md",
        "?.md",
        "%s.md",
        "'; --.md",
        "a b.md",
        "-rf.md",
        "Note.MD",
        "x.markdown",
    ]
    + [
        "Case.md",
        "case.md",
        "my-file.md",
        "my_file.md",
        "\\.md",
        "tab\tin.md",
        "line\nbreak.md",
        "[b]bold[/b].md",
    ]
    + [unicodedata.normalize(form, "é.md") for form in ("NFC", "NFD")]
)


async def test_every_name_is_a_note_of_its_own(vault: Vault) -> None:
    for number, name in enumerate(NAMES):
        vault.write(name, f"word{number} and something common\n")
    await vault.index()
    assert set(await vault.in_index()) == set(NAMES)
    for number, name in enumerate(NAMES):
        assert await vault.found(f"word{number}") == [name]
    assert len(await vault.found("common", k=100)) == len(NAMES)
    for name in NAMES:
        (vault.root / name).unlink()
        await vault.notes.ingest(vault.root / name)
    vault.write("last.md", "the folder is not empty\n")
    await vault.index()
    assert set(await vault.in_index()) == {"last.md"}


async def test_a_name_can_be_searched_within(vault: Vault) -> None:
    for name in ("🐘.md", "{.md", "[.md"):
        vault.write(name, "common words\n")
    await vault.index()
    for pattern, name in (("🐘.md", "🐘.md"), ("{.md", "{.md"), ("\\[.md", "[.md")):
        assert await vault.found("common", path_glob=pattern) == [name]


async def test_10_000_notes_are_listed_and_compared(vault: Vault) -> None:
    for folder in range(100):
        (vault.root / f"{folder}").mkdir()
        for number in range(100):
            (vault.root / f"{folder}/{number}.md").touch()
    assert await vault.notes.index_all() == 10_000
    assert await vault.notes.index_all() == 0, "all of them wait already"
    report = await vault.notes.drift()
    assert report.files_on_disk == 10_000
    assert all(row.queued for row in report.rows)
