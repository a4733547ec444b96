"""Chunks: every line in exactly one, ranges that are the file's text, blocks whole, the right headings."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.notes.blocks import MAX_TITLE, scan, split_lines
from engine.notes.chunking import MAX, TARGET, Chunk, chunk

FRAGMENTS = [
    *("# A", "## B", "### C", "#### D", "#", "# x #", "===", "---", "***", "+++"),
    *("text", "Two sentences. Here.", "", "", "", " ", "\t", "Intro:", "**Bold**", "> quoted"),
    *(
        "- item",
        "  continued",
        "1. one",
        "\t- nested",
        "    code",
        "| a | b |",
        "<table>",
        "</table>",
        "<!-- a",
    ),
    *("```", "~~~", "````", "```py", "  ```", "- ```", "> ```", "# comment"),
    *(
        "word " * 80,
        "a" * 1500,
        "Sentence. " * 300,
        "é\u0301" * 700,
        "数据。" * 500,
        " " * 1500,
        "x" + " " * 2000 + "y",
    ),
    *("\x0b", "a\x0cb", "\u2028x", "\x85", "\ufeff", "\u00a0", "\x00", "\ud800"),
]
texts = st.builds(
    lambda parts, ends: "".join(part + end for part, end in zip(parts, ends, strict=False)),
    st.lists(st.sampled_from(FRAGMENTS), max_size=40),
    st.lists(st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "\n\n"]), min_size=40, max_size=40),
)


FILLER = ("word " * TARGET)[: TARGET - 30] + "end."
"""A paragraph that fills a chunk: packing puts only a crumb beside it."""


def lines_of(text: str) -> list[str]:
    return split_lines(text.removeprefix("\ufeff"))


def covering(chunks: list[Chunk], line: int) -> list[Chunk]:
    return [each for each in chunks if each.line_start <= line <= each.line_end]


def ranges(text: str) -> list[tuple[int, int]]:
    return [(each.line_start, each.line_end) for each in chunk(text)]


def note(text: str) -> str:
    return dedent(text).lstrip("\n")


@settings(max_examples=300, deadline=None)
@given(texts)
def test_every_line_is_in_exactly_one_range(text):
    lines, chunks = lines_of(text), chunk(text)
    for number, line in enumerate(lines, 1):
        holders = covering(chunks, number)
        if line.strip():
            assert len(holders) == 1 or (holders and len(line) > TARGET / 2), (number, holders)


@settings(max_examples=300, deadline=None)
@given(texts)
def test_a_chunk_is_the_text_of_its_lines(text):
    lines, chunks = lines_of(text), chunk(text)
    for each in chunks:
        whole = "\n".join(lines[each.line_start - 1 : each.line_end])
        cut = any(len(covering(chunks, at)) > 1 for at in (each.line_start, each.line_end))
        assert each.text in whole if cut else each.text == whole
        assert lines[each.line_start - 1].strip()
        assert lines[each.line_end - 1].strip()


@settings(max_examples=300, deadline=None)
@given(st.one_of(texts, st.text(max_size=300)))
def test_nothing_is_lost_nor_doubled_nor_over_long(text):
    chunks = chunk(text)
    together = "".join("".join(each.text.split()) for each in chunks)
    assert together == "".join(text.removeprefix("\ufeff").split())
    assert all(0 < len(each.text) <= MAX for each in chunks)
    assert all(len(title) <= MAX_TITLE for each in chunks for title in each.heading)
    assert [each.line_start for each in chunks] == sorted(each.line_start for each in chunks)


@given(texts)
def test_line_ends_do_not_change_chunks(text):
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    assert chunk(plain.replace("\n", "\r\n")) == chunk(plain) == chunk(plain.replace("\n", "\r"))


@pytest.mark.parametrize("text", ["", "\n", " \n\t\r\n", "\ufeff", "\u00a0\n\u3000"])
def test_nothing_but_white_space_has_no_chunk(text):
    assert chunk(text) == []


@pytest.mark.parametrize(
    "text", ["one\ntwo", "one\ntwo\n", "one\r\ntwo\r\n", "one\rtwo\r", "one\r\ntwo\r", "one\r\ntwo"]
)
def test_line_ends_and_the_missing_final_one(text):
    assert chunk(text) == [Chunk(1, 2, "one\ntwo")]


def test_only_line_feeds_and_carriage_returns_end_a_line():
    text = "a\x0bb\x0cc\x85d\u2028e\u2029f\x1cg\n\nlast"
    assert chunk(text) == [Chunk(1, 3, text)]


def test_a_byte_order_mark_before_the_first_heading():
    assert chunk("\ufeff# Title\n\ntext") == [Chunk(1, 3, "# Title\n\ntext", ("Title",))]


def test_a_lone_heading_joins_what_follows():
    assert ranges("# A\n\n\ntext\n\n# B\n\ntext") == [(1, 4), (6, 8)]


def test_a_run_of_headings_joins_the_block_below():
    chunks = chunk("# A\n\n## B\n\n### C\n\ntext")
    assert [(each.line_start, each.line_end, each.heading) for each in chunks] == [(1, 7, ("A", "B", "C"))]


def test_a_heading_with_nothing_below_it_is_found():
    assert chunk("text\n\n# End") == [Chunk(1, 1, "text"), Chunk(3, 3, "# End", ("End",))]


def test_blocks_of_a_section_are_packed_and_sections_are_not():
    text = "# A\n\none\n\ntwo\n\n## B\n\nthree\n\n## C\n\nfour\n"
    assert [(each.line_start, each.line_end, each.heading) for each in chunk(text)] == [
        (1, 5, ("A",)),
        (7, 9, ("A", "B")),
        (11, 13, ("A", "C")),
    ]


def test_packing_stops_at_the_target():
    paragraph = "x" * (TARGET * 2 // 5)
    chunks = chunk("\n\n".join([paragraph] * 7))
    assert [(each.line_start, each.line_end) for each in chunks] == [(1, 3), (5, 7), (9, 11), (13, 13)]
    assert all(len(each.text) <= TARGET for each in chunks)


def test_a_crumb_at_the_end_of_a_section_joins_the_chunk_above():
    crumb = "This little rest of a section says nothing by itself."
    assert ranges(f"{FILLER}\n\n{crumb}\n\n# B\n\ntext") == [(1, 3), (5, 7)]
    assert ranges(f"{FILLER}\n\n{crumb}\n\n{FILLER}") == [(1, 1), (3, 3), (5, 5)]


@pytest.mark.parametrize(
    "lead_in", ["The steps are:", "**The steps**", "手順は次のとおり\uff1a", "__Steps__"]
)
def test_a_lead_in_stays_with_what_it_introduces(lead_in):
    listing = "\n".join("- a step of some length" for _ in range(10))
    assert ranges(f"{FILLER}\n\n{lead_in}\n\n{listing}") == [(1, 1), (3, 14)]


def test_a_heading_that_goes_up_two_levels():
    text = "# A\n\na\n\n## B\n\nb\n\n### C\n\nc\n\n# D\n\nd\n\n### E\n\ne\n\n## F\n\nf"
    assert [each.heading for each in chunk(text)] == [
        ("A",),
        ("A", "B"),
        ("A", "B", "C"),
        ("D",),
        ("D", "E"),
        ("D", "F"),
    ]


def test_text_before_the_first_heading_and_no_heading_at_all():
    assert [each.heading for each in chunk("before\n\n# A\n\nbelow")] == [(), ("A",)]
    assert [each.heading for each in chunk("just text\n\nand more")] == [()]


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("# Title", "Title"),
        ("## Title ##", "Title"),
        ("# Title #######  ", "Title"),
        ("   # Title", "Title"),
        ("#\tTitle\t#", "Title"),
        ("# C#", "C#"),
        ("# F# and #", "F# and"),
        ("###### Six", "Six"),
        ("# my\\_var \\# x", "my_var # x"),
        ("Title\n=====", "Title"),
        ("Title\n---", "Title"),
        ("Title over\ntwo lines\n---", "Title over two lines"),
        ("# " + "t" * 300, "t" * (MAX_TITLE - 1) + "…"),
    ],
)
def test_headings_and_their_titles(line, title):
    (only,) = chunk(f"{line}\n\ntext")
    assert only.heading == (title,)


@pytest.mark.parametrize(
    "line",
    [
        *(
            "#hashtag",
            "####### seven",
            "    # indented code",
            "\t# code",
            "\\# escaped",
            "> # quoted",
            "text # not",
        ),
        *(
            "- item\n---",
            "| a |\n---",
            "> quote\n---",
            "text\n\n---",
            "one\ntwo\nthree\nfour\n---",
            "#" * 300,
        ),
        "# " + "x" * 501,
    ],
)
def test_what_is_no_heading(line):
    assert all(each.heading == () for each in chunk(f"{line}\n\nbelow"))


def test_an_empty_heading_ends_the_section_without_a_title():
    assert [each.heading for each in chunk("# A\n\na\n\n## B\n\nb\n\n#\n\nc")] == [("A",), ("A", "B"), ()]


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        *(
            ("```", "```"),
            ("~~~", "~~~"),
            ("````", "````"),
            ("```python", "```"),
            ("~~~ sh", "~~~~~"),
            ("```", "`````  "),
        ),
        *(
            ("  ```", "  ```"),
            ("- ```", "  ```"),
            ("1. ```c", "   ```"),
            ("- text\n  ```", "  ```"),
            ("> ```", "> ```"),
        ),
        ("- - ```", "    ```"),
    ],
)
def test_a_fenced_block_is_whole_and_its_comments_are_no_headings(opening, closing):
    text = f"# A\n\n{FILLER}\n\n{opening}\n# comment\n\n\n## another\n\nTitle\n===\n{closing}\n\nafter"
    chunks = chunk(text)
    assert {each.heading for each in chunks} == {("A",)}
    first, last = text.split("\n").index("# comment") + 1, text.split("\n").index("===") + 1
    assert len({tuple(covering(chunks, at)) for at in (first, last)}) == 1


@pytest.mark.parametrize(
    ("fence", "inside"),
    [
        ("````", "```"),
        ("~~~", "```"),
        ("```", "~~~"),
        ("```", "```python"),
        ("~~~~", "~~~"),
        ("```", "> ```"),
    ],
)
def test_another_fence_inside_does_not_close(fence, inside):
    text = f"{fence}\n{inside}\n\n# comment\n{fence}\n\n# Heading\n\ntext"
    assert [each.heading for each in chunk(text)] == [(), ("Heading",)]


def test_a_line_of_inline_code_opens_nothing():
    text = "```inline```\n\n# A\n\ntext\n\n```\n# comment\n```\n"
    assert [each.heading for each in chunk(text)] == [(), ("A",)]


def test_after_an_unclosed_fence_the_rest_is_found_under_its_headings():
    text = "# A\n\n```sh\n# comment\nmake\n\n\n# B\n\ntext\n\n## C\n\nmore\n"
    assert [(each.line_start, each.line_end, each.heading) for each in chunk(text)] == [
        (1, 5, ("A",)),
        (8, 10, ("B",)),
        (12, 14, ("B", "C")),
    ]
    assert "".join(each.text for each in chunk("```\ncode\n\nlast words\n\n")).endswith("last words")


def whole_despite_blank_lines(block: str) -> bool:
    """Whether a block is in one chunk where packing alone would have cut it at its blank lines."""
    filler = "word " * 120
    chunks = chunk(
        f"{filler}\n\n{block}\n\nAnd a paragraph that ends the section, long enough to be no crumb. "
        + "z" * 90
    )
    return any(block in each.text for each in chunks)


@pytest.mark.parametrize(
    "block",
    [
        "- one\n\n- two\n\n  more of two\n\n- three",
        "1. one\n\n\n2. two\n\n\ttabbed\n\n3) three",
        "- item\n\n  # part of the item\n\n- next",
        "* a\n\n    * nested\n\n          code\n\n* b",
        "- item\n\n  ```\n  # comment\n\n  code\n  ```\n\n- next",
        "Introduced directly\n- one\n\n- two",
        "<table>\n\n<tr>\n\n# no heading\n\n</tr>\n</table>",
        "<!-- hidden\n\n# no heading\n\n-->",
    ],
)
def test_lists_and_tables_are_not_torn_at_blank_lines(block):
    assert whole_despite_blank_lines(block)


def test_a_pipe_table_is_one_block():
    table = "| a | b |\n|---|---|\n" + "\n".join(f"| {n} | value |" for n in range(20))
    assert whole_despite_blank_lines(table)


def test_a_list_ends_at_the_next_paragraph_and_at_a_heading():
    items = "\n\n".join("- item " + "x" * 70 for _ in range(9))
    text = f"{items}\n\nA paragraph of its own.{'y' * 200}\n\n# H\n\ntext"
    assert ranges(text) == [(1, 17), (19, 19), (21, 23)]


@pytest.mark.parametrize("line", ["* * *", "- - -", "***", "---", "_ _ _"])
def test_a_thematic_break_is_no_list(line):
    text = f"{line}\n\n  indented text\n\n{line}\n\n- item"
    assert [(block.start, block.end) for block in scan(split_lines(text), {})] == [
        (0, 1),
        (2, 3),
        (4, 5),
        (6, 7),
    ]


@pytest.mark.parametrize(
    "front",
    [
        "---\ntitle: A\n---",
        "---\nnot: yaml: [at all\n# comment\n\n{{\n---",
        "---\ntitle: A\n...",
        "+++\ntitle = 'A'\n\n# c\n+++",
        "---\n- just\n\n- a list\n--- ",
    ],
)
def test_front_matter_is_whole_and_has_no_headings(front):
    chunks = chunk(f"{front}\n\n# Title\n\ntext")
    assert [each.heading for each in chunks] == [(), ("Title",)]
    assert chunks[0].text == front


def test_front_matter_after_a_byte_order_mark_and_with_other_line_ends():
    assert ranges("\ufeff---\r\ntitle: A\r\n\r\nb: c\r\n---\r\n# T\r\ntext") == [(1, 5), (6, 7)]


@pytest.mark.parametrize("text", ["---\n\n# A\n\ntext\n\n---\n", "---\nnever closed\n\n# A\n\ntext"])
def test_a_break_on_the_first_line_is_no_front_matter(text):
    assert chunk(text)[-1].heading == ("A",)


def test_the_sections_of_a_real_note():
    text = note(
        """
        # Glossary

        ## Citation

        A path plus a line range.
        An answer without one counts as none.

        ## Chunk

        One fragment of a note.
        """
    )
    assert chunk(text) == [
        Chunk(
            1,
            6,
            "# Glossary\n\n## Citation\n\nA path plus a line range.\nAn answer without one counts as none.",
            ("Glossary", "Citation"),
        ),
        Chunk(8, 10, "## Chunk\n\nOne fragment of a note.", ("Glossary", "Chunk")),
    ]
