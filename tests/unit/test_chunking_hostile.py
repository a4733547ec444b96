"""Bytes that are no text are refused with a reason; texts made to be slow are not."""

from __future__ import annotations

from time import process_time

import pytest

from engine.errors import NoteError
from engine.notes.chunking import MAX, chunk, decode


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", ""),
        (b"plain", "plain"),
        ("\ufeffwith a mark".encode(), "with a mark"),
        ("Grüße\r\n数据🐘".encode(), "Grüße\r\n数据🐘"),
    ],
)
def test_decode_reads_utf8(raw, text):
    assert decode(raw) == text


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("text".encode("utf-16"), ["UTF-16"]),
        ("text".encode("utf-16-le"), ["UTF-16"]),
        ("text".encode("utf-16-be"), ["UTF-16"]),
        (b"one\ntwo \xff\n", ["byte 9", "0xff", "line 2"]),
        (b"one\r\ntwo\rthr\xe4\n", ["byte 13", "0xe4", "line 3"]),
        (b"cut off \xe6\x95", ["byte 9", "line 1"]),
        (b"surrogate \xed\xa0\x80", ["byte 11", "line 1"]),
        ("ä\nb\0c".encode(), ["NUL", "byte 5", "line 2"]),
    ],
)
def test_decode_says_what_is_wrong_and_where(raw, said):
    with pytest.raises(NoteError) as caught:
        decode(raw)
    assert all(part in caught.value.message for part in said)
    assert caught.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        *(
            "x" * 300_000,
            "word " * 60_000,
            "." * 300_000,
            "a" + " " * 300_000 + "b",
            "a" + "\u0301" * 300_000,
        ),
        *(
            "# h\n" * 10_000,
            "# h\n\ntext\n" * 10_000,
            "a\n---\n" * 20_000,
            "#" * 300_000,
            "# " + "#" * 300_000 + "a",
        ),
        *(
            "```x\n" * 20_000,
            "\n".join("`" * (3 + n % 500) + "x" for n in range(2_000)),
            "<table>\n" * 10_000,
        ),
        *(
            "- a" + "\n" * 200_000 + "x",
            "- a\n\n" * 50_000,
            "- " * 150_000,
            "> " * 150_000,
            "- " * 100_000 + "x",
        ),
        *("---\nx\n" + "y\n" * 100_000, "-\t" * 100_000 + "x", "**" * 150_000, "|" * 300_000, "。" * 300_000),
    ],
    ids=range(23),
)
def test_time_is_linear_in_hostile_texts(text):
    start = process_time()
    chunks = chunk(text)
    assert process_time() - start < 5  # tenths of a second each; quadratic ones take minutes
    assert all(len(each.text) <= MAX for each in chunks)
