"""The dashboard's page before a browser sees it: it is whole, asks nobody else, and may run nothing but itself."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

from engine.doors.http import dashboard

PAGE = files("engine.doors.http").joinpath("dashboard.html").read_text(encoding="utf-8")


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(PAGE)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_its_policy_allows_its_own_script_and_style_and_nothing_else() -> None:
    policy = dict(part.split(" ", 1) for part in dashboard.policy(PAGE).split("; "))
    for tag in ("script", "style"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", PAGE, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert policy[f"{tag}-src"] == f"'sha256-{digest}'"
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert "unsafe" not in dashboard.policy(PAGE)


def test_it_names_no_address_but_its_own_paths() -> None:
    elements = Elements().found
    for tag, attributes in elements:
        for name in ("src", "href", "action"):
            assert attributes.get(name, "data:,") == "data:,", tag
        assert not any(name.startswith("on") or name == "style" for name in attributes), tag
    assert set(re.findall(r"https?://[^\s\"']+", PAGE)) == {
        "http://www.w3.org/2000/svg"
    }  # a name, never asked
    assert "@import" not in PAGE
    assert "url(" not in PAGE


def test_text_of_others_becomes_text_and_never_markup() -> None:
    script = re.findall(r"<script>(.*?)</script>", PAGE, re.DOTALL)[0]
    assert not re.search(r"(innerHTML|outerHTML)\s*[+]?=[^=]", script)
    for way in (
        "insertAdjacent",
        "document.write",
        "eval(",
        "Function(",
        "DOMParser",
        "localStorage",
        "createContextual",
    ):
        assert way not in script


def test_it_can_be_read_by_whoever_does_not_see_it() -> None:
    elements = Elements().found
    assert ("html", {"lang": "en"}) in elements
    headings = [int(tag[1]) for tag, _ in elements if re.fullmatch(r"h\d", tag)]
    assert headings[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(headings))
    names = {attributes.get("id") for _, attributes in elements}
    for tag, attributes in elements:
        if tag == "section":
            assert attributes["aria-labelledby"] in names
        if tag == "input":
            assert ("label", {"for": attributes["id"]}) in elements
    assert any(attributes.get("aria-live") == "polite" for _, attributes in elements)
