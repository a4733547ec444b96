"""The script of a text, told by its letters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.scripts import differ, script


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Owls hunt at night, in Österreich too", "LATIN"),
        ("Совы охотятся", "CYRILLIC"),
        ("猫头鹰在夜里捕猎", "CJK"),
        ("フクロウは夜に狩りをする", "CJK"),
        ("부엉이는 밤에 사냥한다", "HANGUL"),
        ("البوم يصطاد ليلا", "ARABIC"),
        ("उल्लू रात में शिकार करते हैं", "DEVANAGARI"),
        ("นกฮูกล่าเหยื่อ", "THAI"),
        ("在 PostgreSQL 里用 pgvector 做向量搜索的笔记写得很长很长很长很长很长", "CJK"),
        ("1.0.21 -- 42", ""),
        ("", ""),
    ],
)
def test_the_script_is_that_of_most_letters(text: str, name: str) -> None:
    assert script(text) == name


def test_a_text_without_letters_differs_from_none() -> None:
    assert differ("owls", "猫头鹰")
    assert not differ("owls", "Eulen")
    assert not differ("42", "猫头鹰")
    assert not differ("owls", "")


@given(st.text())
def test_any_text_has_an_answer(text: str) -> None:
    assert isinstance(script(text), str)
    assert not differ(text, text)
