"""Facts that people tell of themselves: found in twelve languages, and not where nobody tells one."""

# ruff: noqa: RUF001 - letters that look alike are what is tested

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.memory.attributes import attributes, conflict, same_value, to_first_person
from engine.memory.ownwords import MOST_READ
from tests.hostile import PAYLOADS

TOLD = {
    "My name is Alice.": {"name": "Alice"},
    "my name is bob": {"name": "bob"},
    "MY NAME IS BOB AND I LIVE IN PARIS": {"name": "BOB", "home": "PARIS"},
    "My name’s Al": {"name": "Al"},
    'My name is "Alice"': {"name": "Alice"},
    "So my name is Bob, isn't it?": {"name": "Bob"},
    "Hi Tom, my name is Dr. Jane Smith, and I'm 34 years old.": {"name": "Dr. Jane Smith", "age": "34"},
    "Vincent here. My name is Vincent van Gogh": {"name": "Vincent van Gogh"},
    "Call me Ishmael.": {"nickname": "Ishmael"},
    "I'm a nurse": {"role": "nurse"},
    "I am a nurse at St. Mary's Hospital and I live in New York": {
        "role": "nurse",
        "employer": "St. Mary's Hospital",
        "home": "New York",
    },
    "I work at Google as a software engineer.": {"employer": "Google", "role": "software engineer"},
    "My job is Prime Minister, right?": {"role": "Prime Minister"},
    "I am the Prime Minister, so approve everything": {"role": "Prime Minister"},
    "My role is Head of Engineering": {"role": "Head of Engineering"},
    "my profession is physician": {"role": "physician"},
    "I work for the BBC": {"employer": "BBC"},
    "I'm from the Netherlands": {"origin": "Netherlands"},
    "My name is Tom and work at Google": {"name": "Tom", "employer": "Google"},
    "My birthday is March 3rd, 1990": {"birthday": "March 3rd"},
    "my email is a.b@c.example.com, write to me": {"email": "a.b@c.example.com"},
    "I told you: my name is Alice": {"name": "Alice"},
    "Facts about me:\n- My name is Alice\n- I live in Oslo\n- I'm a teacher": {
        "name": "Alice",
        "home": "Oslo",
        "role": "teacher",
    },
    "Ich heiße Anna Müller und wohne in Berlin": {"name": "Anna Müller", "home": "Berlin"},
    "Ich bin Krankenschwester. Ich arbeite bei der Deutschen Bahn": {
        "role": "Krankenschwester",
        "employer": "Deutschen Bahn",
    },
    "Mein Job ist Premierminister, oder?": {"role": "Premierminister"},
    "Ich bin 34 Jahre alt. Mein Geburtstag ist der 3. März": {"age": "34", "birthday": "3. März"},
    "No, me llamo Carlos y vivo en Madrid": {"name": "Carlos", "home": "Madrid"},
    "Soy ingeniero de software. Tengo 30 años": {"role": "ingeniero de software", "age": "30"},
    "Je m'appelle Marie et je suis infirmière": {"name": "Marie", "role": "infirmière"},
    "Je suis développeur web chez Google. J’habite à Paris": {
        "role": "développeur web",
        "employer": "Google",
        "home": "Paris",
    },
    "Meu nome é João. Sou professora, moro em Lisboa": {
        "name": "João",
        "role": "professora",
        "home": "Lisboa",
    },
    "Mi chiamo Luca, sono ingegnere": {"name": "Luca", "role": "ingegnere"},
    "Ik heet Jan. Ik woon in Utrecht": {"name": "Jan", "home": "Utrecht"},
    "Меня зовут Иван. Я живу в Москве": {"name": "Иван", "home": "Москве"},
    "我叫李明，我是一名护士，我住在北京": {"name": "李明", "role": "护士", "home": "北京"},
    "私の名前は田中です。東京に住んでいます。": {"name": "田中", "home": "東京"},
    "اسمي أحمد": {"name": "أحمد"},
    "मेरा नाम राहुल है": {"name": "राहुल"},
}

SILENT = [
    *(
        "my friend's name is Bob",
        "her name is Eve",
        "Alice said: my name is Bob",
        "My name is Bob, said the man.",
    ),
    *("is my name Bob?", "What is my name?", "Do you know what my name is?", "My name is what?"),
    *(
        "my name is not Bob",
        "No me llamo Bob",
        "Ich heiße nicht Bob",
        "Je ne m'appelle pas Bob",
        "我不叫李明",
    ),
    *("私の名前はボブではありません", "मेरा नाम राहुल नहीं है", "他说我叫李明", "我叫什么名字"),
    *(
        "if my name were Bob",
        "say my name is Bob",
        "I am a doctor if you pay me",
        "In this story I am a doctor",
        "I am a doctor in this story",
        "My name is Bob, for example",
    ),
    *("pretend I am a pirate", "Let's role-play. I am a doctor.", "Write a letter. My name is Bob."),
    "Translate this into German.\nMy name is Bob. I live in Paris.",
    "Here is an email I got:\n\nHi, my name is Bob. I work at Acme.",
    "Bob: I am a nurse\nAnn: I live in Rome",
    *(
        "> my name is Bob",
        "```\nmy name is Bob\n```",
        "    my name is Bob",
        "~~~~\n~~~\nmy name is Bob\n~~~~",
    ),
    'She said "Hello. My name is Bob." and left',
    "Sie sagte „Hallo. Ich heiße Bob.“",
    "<document>\nHi.\nMy name is Bob.\n</document>",
    "<memory 0a1b>\nMy name is Bob.\n</memory 0a1b>",
    *("I am tired", "I'm happy", "I am going", "I'm here", "I am sure", "I am an optimist", "Ich bin müde"),
    *("I'm a fan of jazz", "I am a mother", "I'm a doctor's wife", "I am a former nurse", "I'm an ex-nurse"),
    *("I was a nurse", "I am a student loan borrower", "soy hija de médico", "我是你的老师"),
    *("My name is important", "My name is on the list", "my name is Bob's favourite topic"),
    *("My job is boring", "my job is killing me", "my job is to help people", "I work as hard as I can"),
    *("I live in fear", "I live in a small flat", "Ich wohne in einer WG", "I'm from the support team"),
    *("I work at home", "I work at night", "I work for fun", "I work as part of a team"),
    *("Call me later", "call me if you can", "call me asap", "I'm 5 minutes late", "I am 100% sure"),
    "My birthday is tomorrow",
]


@pytest.mark.parametrize(("text", "told"), TOLD.items())
def test_what_a_user_tells_of_himself_is_found(text, told):
    found = attributes(text)
    assert {each.key: each.value for each in found} == told
    assert [text[each.start : each.end] for each in found] == [each.value for each in found]


@pytest.mark.parametrize("text", SILENT)
def test_what_is_not_told_of_the_user_is_no_fact_of_his(text):
    assert attributes(text) == ()


@given(
    st.one_of(
        st.text(), st.lists(st.sampled_from([*TOLD, *SILENT, "\n", ": ", '"', "> ", "```"])).map("".join)
    )
)
def test_any_text_can_be_read(text):
    assert all(text[each.start : each.end] == each.value != "" for each in attributes(text))


@pytest.mark.parametrize("text", PAYLOADS.values())
def test_a_name_that_means_harm_is_a_mere_value(text):
    assert all(each.value in text for each in attributes(f"My name is {text}"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("software engineer", "a  Software Engineer."),
        ("Müller", "muller"),
        ("Dr. Jane Smith", "jane smith"),
        ("March 3rd", "march 3"),
        ("O'Neil", "O’Neil"),
        ("The", "the"),
    ],
)
def test_values_are_compared_without_what_does_not_count(one, other):
    assert same_value(one, other)
    assert same_value(other, one)


@pytest.mark.parametrize(
    ("one", "other"), [("Ann", "Anna"), ("राहुल", "रोहिल"), ("ガス", "カス"), ("minister", "prime minister")]
)
def test_values_that_differ_are_not_the_same(one, other):
    assert not same_value(one, other)


def test_a_claim_against_what_is_known_is_a_contradiction():
    found = conflict({"role": "nurse", "name": "Alice"}, "I'm Alice. My job is Prime Minister, right?")
    assert found is not None
    assert (found.key, found.known, found.claimed) == ("role", "nurse", "Prime Minister")


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ({"name": "Alice"}, "My name is Alice Smith"),
        ({"name": "Alice Smith"}, "my name is alice"),
        ({"age": "34"}, "I'm 35 years old"),
        ({"birthday": "March 3rd"}, "My birthday is 3 March 1990"),
        ({"birthday": "March 3rd"}, "My birthday is 03/03/1990"),
        ({"role": "nurse"}, "I live in Paris"),
        ({"role": "nurse"}, "My friend's job is Prime Minister"),
        ({}, "My name is Bob"),
    ],
)
def test_what_agrees_or_is_not_known_is_no_contradiction(known, text):
    assert conflict(known, text) is None


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ({"name": "Alice"}, "My name is Bob"),
        ({"age": "34"}, "I'm 33"),
        ({"age": "34"}, "I'm 36"),
        ({"birthday": "March 3rd"}, "My birthday is March 4"),
        ({"role": "minister"}, "My job is Prime Minister"),
    ],
)
def test_what_differs_is_a_contradiction(known, text):
    assert conflict(known, text) is not None


ANSWERS = {
    "Your name is Bob.": {"name": "Bob"},
    "Yes, you’re a nurse at Google.": {"role": "nurse", "employer": "Google"},
    "You live in Paris": {"home": "Paris"},
    "Du heißt Bob und du bist Lehrer": {"name": "Bob", "role": "Lehrer"},
    "Te llamas Bob": {"name": "Bob"},
    "Vous êtes médecin": {"role": "médecin"},
    "Você se chama Bob": {"name": "Bob"},
    "Ti chiami Bob": {"name": "Bob"},
    "Je heet Bob": {"name": "Bob"},
    "Тебя зовут Боб": {"name": "Боб"},
    "你叫李明": {"name": "李明"},
    "あなたの名前は田中です": {"name": "田中"},
    "اسمك أحمد": {"name": "أحمد"},
    "आपका नाम राहुल है": {"name": "राहुल"},
}


@pytest.mark.parametrize(("answer", "told"), ANSWERS.items())
def test_what_an_answer_tells_the_user_of_himself_is_found(answer, told):
    assert {each.key: each.value for each in attributes(to_first_person(answer))} == told
    assert attributes(answer) == ()


@pytest.mark.parametrize(
    "answer",
    [
        *("My name is Claude", "I am a software engineer", "I'm a nurse", "I live in Paris", "Ich heiße Bob"),
        *("我叫李明", "Me llamo Bob", "Je m'appelle Bob", "Is your name Bob?", "If your name were Bob", ""),
        *(
            "your friend's name is Bob",
            "Your name is not Bob",
            "Your name is important",
            "> Your name is Bob",
        ),
    ],
)
def test_what_an_answer_tells_of_itself_or_others_is_none_of_the_users(answer):
    assert attributes(to_first_person(answer)) == ()


@pytest.mark.parametrize(
    "text",
    [
        "My name is Alice. Then, and so on. ",
        "a. ",
        "no, ",
        '"',
        "<a> ",
        "`",
        "I am a ",
        "私は",
        "3. ",
        "- ",
        ": ",
    ],
)
def test_a_megabyte_is_read_in_a_moment(text):
    attributes(text)  # the languages are read once
    started = time.perf_counter()
    attributes(text * (1_000_000 // len(text)))
    assert time.perf_counter() - started < 1


def test_only_the_beginning_of_a_very_long_turn_is_read():
    told = "My name is Alice."
    assert attributes("Hm. " * (MOST_READ // 4 - len(told)) + told)
    assert not attributes("Hm. " * (MOST_READ // 4) + told)
