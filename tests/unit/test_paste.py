"""An escape character within a paste never reaches the keys, however the terminal's bytes are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.paste import PasteFilter

START, END, ESC = "\x1b[200~", "\x1b[201~", "\x1b"
TEXT = st.text(st.sampled_from([ESC, "[", "2", "0", "1", "~", "a", "q", "m", "\n"]), max_size=30).filter(
    lambda text: END not in text
)
PORTIONS = st.integers(1, 7)


def passed(data: str, size: int) -> str:
    clean = PasteFilter().clean
    return "".join(clean(data[at : at + size]) for at in range(0, len(data), size))


@given(pasted=TEXT, size=PORTIONS)
def test_a_paste_is_text_and_what_follows_are_keys_again(pasted: str, size: int) -> None:
    found = passed(f"\x1b[A{START}{pasted}{END}\x1b[B", size)
    begin, end = f"\x1b[A{START}", f"{END}\x1b[B"
    assert found.startswith(begin)
    assert found.endswith(end)
    assert found[len(begin) : -len(end)] == pasted.replace(ESC, "\N{SYMBOL FOR ESCAPE}")


@given(keys=TEXT.filter(lambda text: START not in text), size=PORTIONS)
def test_keys_outside_a_paste_pass_at_once_and_unchanged(keys: str, size: int) -> None:
    clean = PasteFilter().clean
    for at in range(0, len(keys), size):
        assert clean(keys[at : at + size]) == keys[at : at + size]
