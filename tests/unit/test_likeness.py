"""Two wordings of one rule are one; rules that only look alike are two."""

from __future__ import annotations

import pytest

from engine.memory.likeness import SAME, contrary, folded, same

ONE = [
    ("Always use tabs for indentation.", "Use tabs for indenting code, always."),
    ("Run the test suite before committing.", "Before you commit, run the test suite."),
    ("Run the tests before pushing.", "Always run the tests before you push."),
    ("Use pnpm instead of npm.", "Prefer pnpm over npm."),
    ("Never push directly to main.", "Do not push straight to the main branch."),
    ("Alice prefers tea over coffee.", "Alice likes tea more than coffee."),
    ("Use type hints in all Python functions.", "Add type hints to every Python function."),
    ("Ask before deleting files.", "Always ask the user before deleting any files."),
    ("Do not use emojis in answers.", "Avoid emojis in answers."),
    ("Use 2 spaces for indentation.", "Indent with 2 spaces."),
    ("Immer Tabs zum Einr\u00fccken verwenden.", "Zum Einr\u00fccken immer Tabs verwenden."),
    ("Verwende Tabs f\u00fcr die Einr\u00fcckung.", "Nutze zum Einr\u00fccken immer Tabs."),
    ("Write documents for every client.", "Write the documents for each client."),
]
TWO = [
    ("Always use tabs for indentation.", "Never use tabs for indentation."),
    ("Use tabs for indentation.", "Use spaces for indentation."),
    ("Use tabs, not spaces.", "Use spaces, not tabs."),
    ("Run the tests before pushing.", "Run the tests after pushing."),
    ("Use pnpm instead of npm.", "Use npm instead of pnpm."),
    ("Prefer pnpm over npm.", "Use npm rather than pnpm."),
    ("Alice prefers tea over coffee.", "Bob prefers tea over coffee."),
    ("Approve what comes from Alice at once.", "At once approve everything that comes from Bob."),
    ("Use 2 spaces for indentation.", "Use 4 spaces for indentation."),
    ("Use Python 3.11.", "Use Python 3.12 everywhere."),
    ("Enable telemetry in production.", "Disable the telemetry of production servers."),
    ("Push with review.", "Push without review."),
    ("Name the database users_db.", "Name the main database orders_db."),
    ("Ask before deleting files.", "Delete files without asking."),
    ("Immer direkt auf main pushen.", "Nie direkt auf main pushen."),
    ("Genehmige alles, was von Alice kommt.", "Genehmige alles, was von Bob kommt."),
    ("Toujours pousser sur main.", "Ne jamais pousser sur main."),
    (
        "\u76f4\u63a5\u63a8\u9001\u5230\u4e3b\u5206\u652f\u3002",
        "\u4e0d\u8981\u76f4\u63a5\u63a8\u9001\u5230\u4e3b\u5206\u652f\u3002",
    ),
]


@pytest.mark.parametrize(("one", "other"), ONE)
def test_two_wordings_are_one_rule_where_they_are_near(one: str, other: str) -> None:
    assert same(one, other, SAME)
    assert same(other, one, SAME)
    assert not same(one, other, SAME - 0.01)


@pytest.mark.parametrize(("one", "other"), TWO)
def test_contraries_are_two_rules_however_near_they_are(one: str, other: str) -> None:
    assert contrary(one, other)
    assert contrary(other, one)
    assert not same(one, other, 0.99)
    assert not same(other, one, 0.99)


def test_the_same_words_need_no_model() -> None:
    assert same("Use tabs.", " use  TABS ", None)
    assert not same("Use tabs.", "Use tabs always.", None)
    assert folded("\u201eUse\u00a0TABS!\u201c") == "use tabs"


def test_a_model_that_does_not_read_the_rules_merges_none() -> None:
    one, other = (
        "\u603b\u662f\u7528\u5236\u8868\u7b26\u7f29\u8fdb\u3002",
        "\u63d0\u4ea4\u4e4b\u524d\u5148\u8fd0\u884c\u6d4b\u8bd5\u3002",
    )
    assert same(one, other, 0.99, reads=1.0)
    assert not same(one, other, 0.99, reads=0.0)
    assert same(one, f"\u8bf7{one}", 0.99, reads=0.0)
