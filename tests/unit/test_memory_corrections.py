"""Explicit corrections: recognised in twelve languages, and nothing that only sounds like one."""

# ruff: noqa: RUF001 - letters that look alike are what is tested

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.memory.corrections import is_correction

CORRECTIONS = [
    *("No, it's Tuesday", "No. It's Tuesday.", "No, use tabs", "no, don't use mocks", "Well, no, it's blue"),
    *("Actually, my name is Bob", "Actually it's 5 pm", "Wrong. It's 5.", "Not quite. The limit is 5."),
    *(
        "that's wrong",
        "That’s not right.",
        "But that's still wrong",
        "Hey, that's wrong",
        "That isn't what I asked",
    ),
    *(
        "Your answer is incorrect",
        "You got it wrong",
        "You misunderstood me. I want X.",
        "you should have used uv",
    ),
    *(
        "I meant the other file",
        "Sorry, I meant 5 pm",
        "I told you to use uv",
        "I already told you that I use fish",
    ),
    *("Correction: the meeting is at 5", "It's not Python but Rust", "My name is Alice, not Alicia"),
    *(
        "Stop adding comments.",
        "please don't do that again",
        "Thanks.\n\nOne thing: you forgot it.\nThat is wrong.",
    ),
    *("Nein, ich heiße Anna", "Das ist falsch", "Das stimmt so nicht.", "Ich meinte das andere"),
    *("Korrektur: Es ist Montag", "Ich bin nicht Arzt, sondern Pfleger", "Eigentlich heiße ich Bob"),
    *("Ich habe dir doch gesagt, dass ich Vim nutze", "Hör auf, Emojis zu verwenden"),
    *("No, es el martes", "Eso es incorrecto", "Quise decir el otro", "Te dije que uso tabs"),
    *("No es Python, sino Rust", "Deja de añadir comentarios", "te equivocas"),
    *("Non, c'est mardi", "C’est faux", "Je voulais dire l'autre", "Je t'ai déjà dit que j'utilise vim"),
    *("Ce n'est pas Paul, mais Pierre", "Arrête d'ajouter des commentaires", "En fait, je m'appelle Marie"),
    *("Não, é terça", "Isso está errado", "Quis dizer o outro", "Na verdade, me chamo João"),
    *(
        "No, è martedì",
        "Ti sbagli",
        "Nee, het is dinsdag",
        "Dat klopt niet",
        "Нет, это вторник",
        "Это неверно",
    ),
    *("不对，是星期二", "不，我叫李明", "我的意思是另一个", "不是Python，而是Rust"),
    *("いいえ、火曜日です", "違います", "訂正：火曜日です", "それは間違っています"),
    *("لا، اليوم الثلاثاء", "नहीं, आज मंगलवार है", "यह गलत है"),
]
NONE = [
    *(
        "",
        "No",
        "no.",
        "No problem, thanks",
        "No idea",
        "No worries!",
        "No, thanks",
        "No need",
        "No, not yet",
    ),
    *(
        "No, that's fine",
        "No, you're right",
        "No, I haven't tried that",
        "no, just wondering",
        "No, but it sounds fun",
    ),
    *("Nope, never been there", "Oh no, sorry to hear that", "Nothing wrong here", "Thanks, that's right"),
    *("Actually that works great", "Actually, that's great!", "Actually, can you also add tests?"),
    *(
        "From now on use tabs",
        "Never use tabs",
        "Stop",
        "Stop running the server",
        "Do it again",
        "Don't worry",
    ),
    *(
        "Is that wrong?",
        "So that is wrong?",
        "You got it wrong?",
        "What's wrong with it?",
        "I don't know what's wrong",
        "It's wrong to steal",
    ),
    *("How do I stop adding comments?", "I meant to ask you something", "Can you explain what I meant?"),
    *("It's not only fast but cheap", "It's not big, but we can all have fun", "I'm not sure but I'll try"),
    *("> that's wrong", "```\nthat's wrong\n```", 'She said "No. That\'s wrong."', "Bob: that's wrong"),
    *("Translate: that's wrong", "Translate this.\nThat's wrong.", "<mail>\nThat's wrong.\n</mail>"),
    *("Nein danke", "Nein, danke", "Nein, alles gut", "Kein Problem", "Ich glaube nicht"),
    *("No gracias", "No, gracias", "No hay problema", "No sé", "Non, merci", "Pas de problème"),
    *("Não, obrigado", "Não sei", "Нет, спасибо", "不客气", "没问题", "いいえ、結構です", "大丈夫です"),
]


@pytest.mark.parametrize("text", CORRECTIONS)
def test_a_correction_is_recognised(text):
    assert is_correction(text)


@pytest.mark.parametrize("text", NONE)
def test_what_corrects_nothing_is_no_correction(text):
    assert not is_correction(text)


@given(
    st.one_of(
        st.text(), st.lists(st.sampled_from([*CORRECTIONS, *NONE, "\n", ": ", '"', "```"])).map("".join)
    )
)
def test_any_text_can_be_read(text):
    assert is_correction(text) in {True, False}


@pytest.mark.parametrize(
    "text", ["no, ", "it is not ", "I said ", "not a ", "don't a ", "a. ", "\n", "你不是", "Never mind. "]
)
def test_a_megabyte_is_read_in_a_moment(text):
    is_correction(text)  # the languages are read once
    started = time.perf_counter()
    is_correction(text * (1_000_000 // len(text)))
    assert time.perf_counter() - started < 1
