"""The dashboard in a real browser: it shows what is, keeps it when the server is gone, and runs nothing of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.doors import exits
from tests import hostile
from tests.integration.browser import PROGRAM, Browser
from tests.integration.server_process import Serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.integration.shell import Shell

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")

SCRIPTS = [
    "<img src=x onerror=\"document.title='OWNED'\">",
    "<script>document.title='OWNED'</script>",
    "</script><script>document.title='OWNED'</script>",
    "<svg onload=document.title='OWNED'>",
    "<a href=\"javascript:document.title='OWNED'\">x</a>",
    "<iframe src=//evil.example></iframe><link rel=stylesheet href=//evil.example>",
    "<style>@import 'http://evil.example'; body{background:url(//evil.example)}</style>",
    "{{constructor.constructor('document.title=1')()}} ${document.title='OWNED'}",
    "\"' onfocus=document.title='OWNED' autofocus x='",
    "__proto__",
]


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Browser]:
    async with Browser(tmp_path / "profile") as opened:
        yield opened


@pytest.fixture
def notes(shell: Shell, tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(4):
        (folder / f"{number}.md").write_text(f"# Bird {number}\n\nAn owl called {number} times.\n")
    (folder / "bad.md").write_bytes(b"\xff\xfe\x00")
    assert shell.run("index", str(folder), "--no-embed").returncode == exits.ERROR
    return folder


LIVE = "document.body?.dataset.state === 'live'"


async def open_dashboard(browser: Browser, server: Serving) -> None:
    await browser.open(f"{server.url}/dashboard")


async def values(browser: Browser, part: str) -> dict[str, str]:
    """The terms and descriptions of one list of the page."""
    found = await browser.evaluate(
        f"[...document.querySelectorAll('#{part} dt')].map((e) => [e.innerText, e.nextElementSibling.innerText])"
    )
    return dict(found)


async def test_it_shows_what_is_and_follows_what_becomes(shell: Shell, notes: Path, browser: Browser) -> None:
    with Serving(shell) as server:
        client = server.client()
        client.get("/search", params={"q": "owl called"})
        await open_dashboard(browser, server)
        await browser.until(LIVE)
        index = await values(browser, "index")
        assert index["Notes on the disk"] == "5"
        assert index["Notes in the index"] == "4"
        assert index["Model"] == "all-MiniLM-L6-v2-int8"
        assert (await values(browser, "drift"))["Last job failed"] == "1"
        queue = await values(browser, "queue")
        assert (queue["Done"], queue["Failed"]) == ("4", "1")
        assert await values(browser, "eval") == {"No run yet": ""}
        await browser.until("document.querySelector('#asked').innerText.includes('owl called')")
        assert "bad.md" in await browser.text("#jobs")
        (notes / "late.md").write_text("A kestrel.\n")
        await browser.until("document.querySelector('#index').innerText.includes('Notes in the index\\n5')")
        await browser.until("document.querySelector('#jobs').innerText.includes('late.md')")
    assert browser.complaints == []
    assert all(each.startswith(f"{server.url}/") for each in browser.requests), browser.requests


async def test_text_of_others_is_text_and_asks_nobody(shell: Shell, notes: Path, browser: Browser) -> None:
    hostile.write_notes(notes / "hostile")
    for number, script in enumerate(SCRIPTS):
        (notes / f"{number} {script.replace('/', '|')}.md").write_text(f"# {script}\n\nowl {script}\n")
    shell.run("index", "--no-embed")
    with Serving(shell) as server:
        client = server.client()
        for text in (*SCRIPTS, *(text for text in hostile.PAYLOADS.values() if len(text) < 500)):
            query = text.encode("utf-8", "replace").decode()
            assert client.get("/search", params={"q": f"owl {query}"}).status_code == 200
        await open_dashboard(browser, server)
        await browser.until(LIVE)
        for part, limit in (("asked", 200), ("jobs", 200)):
            # All of them at once, where the page shows the newest.
            path = "/traces/recent" if part == "asked" else "/jobs/recent"
            told = client.get(path, params={"limit": limit}).text
            assert "OWNED" in told
        await browser.evaluate(
            "(() => { const real = window.fetch;"
            " window.fetch = (address, options) => real(address.replace(/limit=\\d+/, 'limit=200'), options); })()"
        )
        await browser.until("document.querySelectorAll('#asked tbody tr').length > 30")
        await browser.until("document.querySelectorAll('#jobs tbody tr').length > 60")
        assert "<script>document.title='OWNED'</script>" in await browser.text("#asked")
        assert await browser.evaluate("document.title") == "Noctuary"
        assert (
            await browser.evaluate("document.querySelectorAll('img, iframe, a, link[rel=stylesheet]').length")
            == 0
        )
        assert await browser.evaluate("document.querySelectorAll('script').length") == 1
        shown = await browser.text()
        assert not {c for c in shown if c < " " and c not in "\n\t"}
        assert not {"\u202e", "\u2066", "\x9b", "\x7f"} & set(shown)
    assert browser.complaints == []
    assert all(each.startswith(f"{server.url}/") for each in browser.requests), browser.requests


async def test_even_a_script_that_got_in_would_not_run(shell: Shell, browser: Browser) -> None:
    with Serving(shell) as server:
        await open_dashboard(browser, server)
        await browser.until(LIVE)
        await browser.evaluate(
            "(() => { const made = document.createElement('script'); made.textContent = 'document.title = 1';"
            " document.body.append(made); new Image().src = 'http://evil.example/x.png';"
            " document.body.setAttribute('onclick', 'document.title = 2'); document.body.click(); })()"
        )
        await browser.until(LIVE)
        assert await browser.evaluate("document.title") == "Noctuary"
        refused = [each for each in browser.complaints if "Content Security Policy" in each]
        assert len(refused) >= 2
        assert (
            await browser.evaluate("fetch('http://127.0.0.1:9/').then(() => 'asked', () => 'refused')")
            == "refused"
        )


async def test_it_keeps_its_values_and_says_stale_until_the_server_is_back(
    shell: Shell, notes: Path, browser: Browser
) -> None:
    with Serving(shell) as server:
        port = server.port
        await open_dashboard(browser, server)
        await browser.until(LIVE)
        server.process.kill()
        server.process.wait()
        await browser.until("document.body.dataset.state === 'stale'")
        assert await browser.text("#state") == "Stale: no answer"
        assert (await values(browser, "index"))["Notes in the index"] == "4"
        await browser.until("/^as of ([2-9]|\\d\\d+) s ago$/.test(document.querySelector('#age').innerText)")
    (notes / "new.md").write_text("A new owl.\n")
    with Serving(shell, port=port):
        await browser.until(LIVE)
        assert await browser.text("#state") == "Live"
        await browser.until("document.querySelector('#index').innerText.includes('Notes in the index\\n5')")


async def test_a_limit_is_told_and_waited_out(shell: Shell, notes: Path, browser: Browser) -> None:
    shell.env["RATE_LIMIT_PER_MINUTE"] = "6"
    with Serving(shell) as server:
        await open_dashboard(browser, server)
        await browser.until(LIVE)
        await browser.until("document.body.dataset.state === 'stale'")
        assert await browser.text("#state") == "Stale: asked too often"
        assert (await values(browser, "index"))["Notes in the index"] == "4"


async def test_it_asks_for_the_token_and_keeps_it_for_the_tab_alone(
    shell: Shell, notes: Path, browser: Browser
) -> None:
    shell.env["API_TOKEN"] = "s3cret"
    with Serving(shell) as server:
        await open_dashboard(browser, server)
        await browser.until("document.body?.dataset.state === 'token'")
        assert await browser.text("#state") == "This server wants a token."
        assert await values(browser, "index") == {}
        assert await browser.evaluate("document.activeElement.id") == "token"
        await browser.type("wrong")
        await browser.press("Enter", 13, "\r")
        await browser.until("document.querySelector('#state').innerText === 'The token is wrong.'")
        await browser.evaluate("document.querySelector('#token').focus()")
        await browser.type("s3cret")
        await browser.press("Enter", 13, "\r")
        await browser.until(LIVE)
        assert await browser.evaluate("document.querySelector('#ask').hidden")
        assert (await values(browser, "index"))["Notes in the index"] == "4"
        assert await browser.evaluate("sessionStorage.length") == 1
        assert await browser.evaluate("localStorage.length + document.cookie.length") == 0
        assert not any("s3cret" in each for each in browser.requests)
        await browser.call("Page.reload")
        await browser.until(LIVE)


async def test_it_stops_asking_while_nobody_looks(shell: Shell, browser: Browser) -> None:
    with Serving(shell) as server:
        await open_dashboard(browser, server)
        await browser.until(LIVE)
        await browser.evaluate(
            "(() => { Object.defineProperty(document, 'hidden', {get: () => window.away, configurable: true});"
            " window.away = true; window.asked = 0; const real = window.fetch;"
            " window.fetch = (...all) => { window.asked += 1; return real(...all); };"
            " window.later = 0; setTimeout(() => { window.later = 1; }, 6000); })()"
        )
        await browser.until("window.later")
        assert await browser.evaluate("window.asked") == 0
        await browser.evaluate("window.away = false; document.dispatchEvent(new Event('visibilitychange'))")
        await browser.until("window.asked >= 4")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_it_can_be_read_in_light_and_dark_and_on_a_phone(
    shell: Shell, notes: Path, browser: Browser, scheme: str
) -> None:
    (notes / ("long" * 40 + ".md")).write_text("Long.\n")
    shell.run("index", "--no-embed")
    with Serving(shell) as server:
        server.client().get("/search", params={"q": "unbreakable" * 60})
        await browser.call(
            "Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=2, mobile=True
        )
        await browser.call(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
        )
        await open_dashboard(browser, server)
        await browser.until(LIVE)
        await browser.until("document.querySelector('#asked table')")
        assert await browser.evaluate("document.documentElement.scrollWidth") == 360
        pale = await browser.evaluate(CONTRASTS)
        assert pale == [], pale
        ground = await browser.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, ground[4:-1].split(", "))) > 380) is (scheme == "light")


CONTRASTS = """(() => {
  const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number).map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, n) => sum + c * [0.2126, 0.7152, 0.0722][n], 0);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (!colour.startsWith("rgba(0, 0, 0, 0")) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const pale = [];
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.offsetParent) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) pale.push(e.tagName + " " + e.innerText);
  }
  return pale;
})()"""
"""Texts of the page that are harder to read than WCAG's 4.5 to 1."""
