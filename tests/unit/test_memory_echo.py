"""Recalled text that comes back is recognised; an answer that only uses it is not."""

# ruff: noqa: RUF001 - letters that look alike are what is tested

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.memory.constitutions import Constitution
from engine.memory.echo import ECHO, FENCE, RUN, SHORTEST, is_echo, share_recalled
from engine.memory.messages import messages
from engine.memory.model import GivenLesson

RECALLED = (
    "The migration to the new database begins on Tuesday after the nightly backup has finished, and Carol "
    "watches the replication lag while Bob keeps the old server ready in case that we have to go back."
)
CHINESE = "数据库迁移在星期二夜间备份完成之后开始，卡罗尔观察复制延迟，鲍勃让旧服务器随时待命，以防我们需要回退到之前的版本。"
JAPANESE = "データベースの移行は火曜日の夜間バックアップが終わった後に始まり、キャロルが遅延を監視し、ボブは古いサーバーを待機させます。"
OTHER = (
    "Our holiday in Portugal was lovely: we swam every morning, ate grilled fish by the harbour at noon and "
    "walked through small villages until the sun went down behind the hills."
)


@pytest.mark.parametrize(
    "text",
    [
        RECALLED,
        RECALLED.upper(),
        RECALLED.replace(",", " -").replace(" ", "\n"),
        f"You said: {RECALLED} Shall I go on?",
        " ".join(RECALLED.split()[3:30]),
    ],
)
def test_what_repeats_recalled_text_is_an_echo(text):
    assert is_echo(text, [OTHER, RECALLED])


@pytest.mark.parametrize("text", [CHINESE, JAPANESE, f"你说过：{CHINESE}"])
def test_so_is_what_repeats_it_in_a_script_without_spaces(text):
    assert is_echo(text, [CHINESE, JAPANESE])


def test_an_echo_may_come_from_several_texts():
    assert is_echo(f"{RECALLED} {OTHER}", [OTHER, RECALLED])


@pytest.mark.parametrize(
    ("text", "recalled"),
    [
        ("Your name is Alice.", ["My name is Alice.", "Your name is Alice."]),
        (" ".join(RECALLED.split()[: SHORTEST - 1]), [RECALLED]),
        (CHINESE[:30], [CHINESE]),
        (
            "It begins on Tuesday, once the backup is done; Carol and Bob keep an eye on things until then, as I said.",
            [RECALLED],
        ),
        (f"{RECALLED} {OTHER}", [RECALLED]),
        (RECALLED, []),
        (RECALLED, [OTHER, ""]),
        (" ".join(reversed(RECALLED.split())), [RECALLED]),
        (
            "在葡萄牙的假期很愉快，我们每天早上游泳，中午在港口吃烤鱼，然后在小村庄里散步直到太阳落到山后面去。",
            [CHINESE],
        ),
        ("", [RECALLED]),
        ("", []),
    ],
)
def test_what_says_its_own_is_no_echo(text, recalled):
    assert not is_echo(text, recalled)


def test_a_prompt_with_our_fences_is_an_echo():
    lesson = GivenLesson(1, "Answer briefly.", None, 1)
    prompt = messages("What is new?", Constitution("plain", ""), [lesson], [], None)
    told = prompt[-1]["content"]
    assert FENCE.search(told)
    assert is_echo(told, [])
    assert not is_echo("A line <memory CODE> opens what was recalled, </memory> closes it.", [])


def test_the_share_counts_the_words_in_runs_that_are_long_enough():
    words = RECALLED.split()
    own = " ".join(f"own{number}" for number in range(RUN))
    assert share_recalled(RECALLED, [RECALLED]) == 1
    assert share_recalled(f"{' '.join(words[:RUN])} {own}", [RECALLED]) == 0.5
    assert share_recalled(f"{' '.join(words[: RUN - 1])} {own}", [RECALLED]) == 0
    assert share_recalled("", [RECALLED]) == 0


def test_the_threshold_is_where_it_is_said_to_be():
    words = RECALLED.split()[:32]
    own = [f"own{number}" for number in range(9)]
    assert is_echo(" ".join(words + own[:8]), [RECALLED])
    assert share_recalled(" ".join(words + own[:8]), [RECALLED]) == ECHO
    assert not is_echo(" ".join(words + own), [RECALLED])


@given(st.text(), st.lists(st.text(), max_size=3))
def test_the_share_is_one_and_whole_for_any_text(text, recalled):
    assert 0 <= share_recalled(text, recalled) <= 1
    assert share_recalled(text, [*recalled, text]) in {0, 1}


@pytest.mark.parametrize(
    "text", ["one two three four five six seven eight ", "a ", "数据库迁移", "x", "<memory "]
)
def test_a_megabyte_is_compared_in_a_moment(text):
    long = text * (1_000_000 // len(text))
    started = time.perf_counter()
    is_echo(long, [RECALLED, CHINESE, long[:10_000]])
    assert time.perf_counter() - started < 2
