"""Terms and queries: what is written one way is found another, and nothing hostile gets through."""

# ruff: noqa: RUF001 - letters that look alike are what is tested

from __future__ import annotations

import unicodedata
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.text.tokens import MAX_QUERY_TERMS, MAX_TERM, Query, match_spans, parse_query, terms

ALPHABET = "abs1A_-.'’+#\\ \n\"“”«»éE\u0301ßİıﬁ²№½™ＡＢ．＿数据库データ데이터\u1103\u1166ไทยกำहिन्दीعَرَبِي🐘✅\u200c\u200d\u00ad\ufeff\x00\ud800\ufe0f"
texts = st.one_of(st.text(ALPHABET, max_size=60), st.text(max_size=60))


def marked(text: str, query: str, *, prefix: bool = False) -> list[str]:
    return [text[start:end] for start, end in match_spans(text, parse_query(query), prefix=prefix)]


def says(query: str, text: str) -> bool:
    (phrase,) = parse_query(query).phrases
    return phrase.found_in(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One two, two.", ["one", "two", "two"]),
        ("real-time", ["real-time", "real", "time"]),
        ("my_var", ["my_var", "my", "var"]),
        ("1.0.21", ["1.0.21", "1", "0", "21"]),
        ("v1.0.21", ["v1.0.21", "1.0.21", "1", "v1", "0", "21"]),
        ("camelCase", ["camelcase", "camel", "case"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("getHTTPResponse2", ["gethttpresponse2", "get", "http", "response2"]),
        ("aBcDeFgHiJkLmNoPqRsT", ["abcdefghijklmnopqrst"]),
        ("UPPER VMs Title", ["upper", "vms", "title"]),
        ("C++ C# F#.", ["c++", "c", "c#", "c", "f#", "f"]),
        ("C\\+\\+, C\\#", ["c++", "c", "c#", "c"]),
        (".NET, ASP.NET", [".net", "net", "asp.net", "asp", "net"]),
        ("# Title # page#anchor", ["title", "page", "anchor"]),
        ("NDIS\\_STATUS\\_X", ["ndis_status_x", "ndis", "status", "x"]),
        ("__init__ a--b x...y", ["init", "a", "b", "x", "y"]),
        ("don't user's user\\'s", ["dont", "don", "user", "user"]),
        ("don’t l’homme", ["dont", "don", "lhomme", "homme"]),
        ("Donaudampfschifffahrt Straße ÄRGER", ["donaudampfschifffahrt", "strasse", "ärger"]),
        ("größeÄnderung", ["grösseänderung", "grösse", "änderung"]),
        ("ﬁle ＡＢＣ ΣΑΣ İstanbul", ["file", "abc", "σασ", "istanbul"]),
        ("H₂O word¹ Windows™ m²", ["h2o", "word", "windows", "m"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("عَرَبِيّ", ["عرب"]),
        ("الكتاب والكتاب كتاب للكتاب كتابهم أكتب", ["كتاب"] * 5 + ["اكتب"]),
        ("مكتبة المكتبات", ["مكتب", "مكتب"]),
        ("می‌خواهم soft\u00adhyphen", ["میخواهم", "softhyphen"]),
        ("数据库", ["数据", "据库", "数", "据", "库"]),
        ("水", ["水"]),
        ("数据\n库", ["数据", "据库", "数", "据", "库"]),
        ("データ ｶﾞｷﾞ", ["デー", "ータ", "ガギ"]),
        ("데이터", ["데이", "이터", "데", "이", "터"]),
        ("ไทย ที่นี่ ก็", ["ไท", "ทย", "ที่นี่", "ก็"]),
        ("Pythonで書く", ["python", "で書", "書く", "書"]),
        ("done ✅🔥", ["done", "✅", "🔥"]),
        ("a\x00b\ud800c", ["a", "b", "c"]),
        ("", []),
        ("... --- ___ ''", []),
    ],
)
def test_terms(text, expected):
    assert terms(text) == expected


@given(st.text(st.characters(codec="ascii"), max_size=80))
def test_a_text_of_ascii_has_the_same_terms_within_a_text_that_is_not(text):
    assert terms(text + " \u2014") == terms(text)


@given(texts)
def test_terms_are_bounded_and_fit_for_the_database(text):
    for term in terms(text) + list(parse_query(text).terms):
        assert 0 < len(term) <= MAX_TERM
        assert "\0" not in term
        assert len(term.encode()) <= 4 * MAX_TERM


@given(texts)
def test_case_and_composition_do_not_change_terms(text):
    plain = text.lower()  # camel case is lost by design
    assert terms(unicodedata.normalize("NFD", plain)) == terms(unicodedata.normalize("NFC", plain))


@given(st.text("abcäßé一二ไทย한글 -_.", max_size=60))
def test_a_text_is_found_by_its_own_words_in_capitals(text):
    assert set(parse_query(text.upper()).terms) <= set(terms(text))


@given(texts)
def test_every_term_of_a_query_is_in_the_index_of_the_same_text(text):
    assert set(parse_query(text).terms) <= set(terms(text))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        *(
            ("real-time", "in real-time now"),
            ("my_var", "set `my_var` to 1"),
            ("1.0.21", "since 1.0.21."),
            ("1.0.21", "v1.0.21"),
        ),
        *(("camelCase", "a camelCase name"), ("camelcase", "a camelCase name"), ("case", "a camelCase name")),
        *(("C++", "in C++, mostly"), ("c#", "(C#)"), (".net", "the .NET runtime"), ("f#", "F# code")),
        *(
            ("Donaudampfschifffahrt", "die Donaudampfschifffahrt"),
            ("STRASSE", "die Straße"),
            ("ärger", "ÄRGER"),
        ),
        *(
            ("数据库", "这个数据库很好"),
            ("库", "数据库"),
            ("データ", "データベースです"),
            ("데이터베이스", "데이터베이스를 쓴다"),
        ),
        *(
            ("물", "물을 마신다"),
            ("ภาษาไทย", "เขาพูดภาษาไทยได้"),
            ("ｶﾀｶﾅ", "カタカナ"),
            ("dont", "don't"),
            ("user", "the user's"),
        ),
    ],
)
def test_the_best_term_of_a_query_is_found(query, text):
    assert parse_query(query).terms[0] in terms(text)
    assert marked(text, query)


def test_a_line_of_base64_is_one_short_term():
    assert terms("QUJD" * 75_000) == ["qujd" * 16]
    assert parse_query("QUJD" * 75_000).terms == ("qujd" * 16,)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 300_000,
        "a_" * 150_000,
        "aB" * 150_000,
        "a'" * 150_000,
        "数" * 300_000,
        "e\u0301" * 150_000,
        "\\" * 300_000,
        "_" * 300_000,
        "." * 300_000,
        "a\u200d" * 150_000,
    ],
    ids=range(10),
)
def test_time_is_linear_in_hostile_texts(text):
    start = process_time()
    terms(text)
    terms(text + "é")
    query = parse_query(f'"{text}" {text}')
    match_spans(text, query)
    assert process_time() - start < 10  # about a second; quadratic ones take minutes


def test_a_query_names_each_term_once_in_order():
    query = parse_query("Real-time clock, real TIME")
    assert query.terms == ("real-time", "real", "time", "clock")
    assert query.phrases == ()
    assert not query.empty


@pytest.mark.parametrize("query", ["", "  ", '""', '"', "?!", '"..."', "\x00", "\ud800"])
def test_an_empty_query(query):
    assert parse_query(query).empty
    assert parse_query(query).phrases == ()
    assert match_spans("some text", parse_query(query), prefix=True) == ()


def test_a_pasted_document_is_not_a_query_of_thousands_of_terms():
    assert len(parse_query(" ".join(f"w{n}" for n in range(50_000))).terms) <= MAX_QUERY_TERMS


@pytest.mark.parametrize(
    ("query", "prefix"),
    [
        ("real-ti", "real-ti"),
        ("two Wor", "wor"),
        ("two W", None),
        ("wo", "wo"),
        ("word ", None),
        ("word,", None),
        ('"a phrase"', None),
        ('"a phr', "phr"),
        ("数", "数"),
        ("数据", None),
        ("Straß", "strass"),
        ("", None),
        ("🐘", None),
        ("x" * 100, "x" * MAX_TERM),
    ],
)
def test_the_unfinished_word(query, prefix):
    assert parse_query(query).prefix == prefix


@pytest.mark.parametrize(
    ("query", "words", "required"),
    [
        ('a "real-time clock" b', ("real-time", "clock"), ("real", "time", "clock")),
        ("“curly quotes”", ("curly", "quotes"), ("curly", "quotes")),
        ("«deux mots»", ("deux", "mots"), ("deux", "mots")),
        ("„zwei Wörter“", ("zwei", "wörter"), ("zwei", "wörter")),
        ('"数据库"', ("数据库",), ("数据", "据库")),
        ('"C++ code"', ("c++", "code"), ("c", "code")),
    ],
)
def test_quotes_make_phrases(query, words, required):
    (phrase,) = parse_query(query).phrases
    assert phrase.words == words
    assert phrase.terms == required


@pytest.mark.parametrize("query", ['"not closed', 'not closed"', '5" disk', "“not closed", "«not closed"])
def test_a_quote_that_is_not_closed_makes_no_phrase(query):
    assert parse_query(query).phrases == ()
    assert not parse_query(query).empty


def test_two_phrases_and_a_lone_quote():
    assert [phrase.words for phrase in parse_query('"one two" x "three" "four').phrases] == [
        ("one", "two"),
        ("three",),
    ]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        *(
            ('"foo bar"', "a Foo bar."),
            ('"foo bar"', "**foo** _bar_"),
            ('"foo bar"', "foo, bar"),
            ('"foo bar"', "foo\n> bar"),
        ),
        *(
            ('"foo bar"', "foo\r\nbar"),
            ('"foo bar"', "foo-bar"),
            ('"foo bar"', "FOO\u3000ＢＡＲ"),
            ('"foo-bar"', "foo bar"),
        ),
        *(
            ('"my_var"', "my_var"),
            ('"my_var"', "x.my\\_var()"),
            ('"1.0.21"', "(1.0.21)"),
            ('"c++ code"', "C++ code"),
        ),
        *(
            ('".net core"', ".NET Core"),
            ('"don\'t panic"', "Don’t panic"),
            ('"homme moderne"', "l'homme moderne"),
        ),
        *(
            ('"数据库"', "这个数据库"),
            ('"数据库"', "数据\n库"),
            ('"ﬁle"', "a file"),
            ('"file"', "a ﬁle"),
            ('"straße"', "STRASSE"),
        ),
        *(
            ('"python入門"', "Python 入門"),
            ('"python"', "Pythonで"),
            ('"데이터 베이스"', "데이터 베이스를"),
            ('"हिन्दी में"', "हिन्दी में"),
        ),
        *(
            ('"foo foo"', "xfoo foo foo"),
            ('"windows driver"', "Windows™ driver"),
            ('"café"', "cafe\u0301"),
            ('"das wort"', "das ´Wort´"),
            ('"ship it"', "ship\u00ad it"),
        ),
    ],
)
def test_a_phrase_that_is_there(query, text):
    assert says(query, text)
    assert set(parse_query(query).phrases[0].terms) <= set(terms(text))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        *(
            ('"foo bar"', "foo the bar"),
            ('"foo bar"', "bar foo"),
            ('"foo bar"', "foo\n\nbar"),
            ('"foo bar"', "foo bars"),
        ),
        *(
            ('"foo bar"', "afoo bar"),
            ('"foo bar"', "foo" + "." * 30 + "bar"),
            ('"1.0.21"', "11.0.21"),
            ('"1.0.21"', "1.0.211"),
        ),
        *(
            ('"1.0.21"', "1 0 21"),
            ('"my_var"', "my var"),
            ('"数据库"', "数据的库"),
            ('"हिन्दी"', "हिन्दीं"),
            ('"दी"', "हिन्दी"),
        ),
        *(
            ('"ไท"', "ไท่"),
            ('"cafe"', "cafe\u0301"),
            ('"c++"', "c"),
            ('"s"', "user's"),
            ('"l"', "l'homme"),
            ('"foo s"', "foo's"),
        ),
    ],
)
def test_a_phrase_that_is_not_there(query, text):
    assert not says(query, text)


@settings(max_examples=500)
@given(st.text("ab1 -_.'+#\\\n数데ไก็é", max_size=24), st.text("ab1 -_.'+#\\\n数데ไก็é", max_size=24))
def test_a_text_with_a_phrase_has_the_phrase_s_terms(quoted, text):
    for phrase in parse_query(f'"{quoted}"').phrases:
        if phrase.found_in(text):
            assert set(phrase.terms) <= set(terms(text))


@given(
    st.lists(
        st.sampled_from(["real-time", "my_var", "1.0", "C++", "数据", "don't", "wörd", "Ab"]),
        min_size=1,
        max_size=5,
    )
)
def test_a_phrase_finds_itself(words):
    assert says('"' + " ".join(words) + '"', "x " + "\n".join(words).upper() + " y")


@pytest.mark.parametrize(
    "text", ["foo " + "- " * 50_000, "foo" + " \n" * 50_000, "foo_" * 50_000, "foo\\" * 50_000]
)
def test_a_phrase_is_decided_in_linear_time(text):
    start = process_time()
    assert not says('"foo bar_baz-qux 1.0"', text)
    assert process_time() - start < 5  # hundredths of a second; backtracking would take minutes


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("Real-time, in real time", "real-time", ["Real-time", "real", "time"]),
        ("Real-time", "time", ["time"]),
        ("my\\_var = camelCase", "my_var case", ["my\\_var", "Case"]),
        ("İX ﬁle ＡＢＣ e\u0301t\u00e9", "file abc été", ["ﬁle", "ＡＢＣ", "e\u0301té"]),
        ("数据库结构", "数据库", ["数据库"]),
        ("这是数据的库", "数据库", ["数据"]),
        ("数据库", "库", ["库"]),
        ("ｶﾞｷﾞグ", "ガギ", ["ｶﾞｷﾞ"]),
        ("\u1103\u1166\u110b\u1175\u1110\u1165", "데이", ["\u1103\u1166\u110b\u1175"]),
        ("เขาพูดภาษาไทยได้", "ภาษา", ["ภาษา"]),
        ("C++ and C", "c++", ["C++", "C"]),
        ("🐘 here", "🐘", ["🐘"]),
        ("nothing here", "absent", []),
    ],
)
def test_spans_are_offsets_in_the_text_as_it_is(text, query, expected):
    assert marked(text, query) == expected


def test_spans_of_an_unfinished_word_only_when_asked_for():
    assert marked("reads real-time", "rea") == []
    assert marked("reads real-time", "rea", prefix=True) == ["reads", "real-time"]
    assert marked("数据库", "数", prefix=True) == ["数据"]


@given(texts, texts, st.booleans())
def test_spans_are_sorted_apart_and_inside(text, query, prefix):
    end_before = -1
    for start, end in match_spans(text, parse_query(query), prefix=prefix):
        assert end_before < start < end <= len(text)
        end_before = end


@given(texts)
def test_a_text_is_marked_wherever_it_has_terms(text):
    assert bool(match_spans(text, Query(text, tuple(terms(text))))) == bool(terms(text))
