"""The guard before the routes: who is let through, who is told to wait, and which pages may not ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.doors.http.access import MOST_CLIENTS, WINDOW, Access, Windows
from engine.doors.http.asgi import answer
from engine.doors.http.keys import ONE, WRONG, Keys, Unauthorized
from engine.memory.model import LOCAL
from tests.asgi import Headers, Reply, ask, well

if TYPE_CHECKING:
    from engine.doors.http.asgi import Receive, Scope, Send

TOKEN = "s3cret"
HOSTS = frozenset({"localhost"})


def guard(token: str | None = None, limit: int = 0, hosts: frozenset[str] | None = None) -> Access:
    return Access(well, Keys.of(token), Windows(limit), hosts, bare=frozenset({"/page"}))


def bearer(token: str) -> Headers:
    return {"authorization": f"Bearer {token}"}


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_without_a_token_anybody_is_let_through() -> None:
    assert (await ask(guard(), "/search")).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer("wrong"),
        bearer(""),
        bearer(TOKEN + "x"),
        bearer(TOKEN[:-1]),
        bearer("gehe\xefm"),
        {"authorization": TOKEN},
        {"authorization": f"Basic {TOKEN}"},
        {"cookie": f"token={TOKEN}"},
        {"x-forwarded-for": "127.0.0.1"},
    ],
)
async def test_who_does_not_show_the_token_is_told_to(headers: Headers) -> None:
    reply = await ask(guard(TOKEN), "/search", query=f"token={TOKEN}", headers=headers)
    assert reply.status == 401
    assert reply.headers["www-authenticate"].startswith("Bearer")
    assert reply.json == {"detail": "A token is missing or wrong."}


@pytest.mark.parametrize("kind", ["Bearer", "bearer", "BEARER"])
async def test_who_shows_the_token_is_let_through(kind: str) -> None:
    assert (await ask(guard(TOKEN), "/search", headers={"authorization": f"{kind} {TOKEN}"})).status == 200


@pytest.mark.parametrize("headers", [{"x-api-key": TOKEN}, bearer(TOKEN)])
async def test_a_key_is_shown_in_either_header(headers: Headers) -> None:
    assert (await ask(guard(TOKEN), "/search", headers=headers)).status == 200


@pytest.mark.parametrize(
    "headers", [{"x-api-key": "wrong"}, {"x-api-key": ""}, {"x-api-key": f"Bearer {TOKEN}"}]
)
async def test_a_wrong_key_is_no_key(headers: Headers) -> None:
    assert (await ask(guard(TOKEN), "/search", headers=headers)).json == {"detail": WRONG}


async def test_who_shows_two_keys_is_told_to_show_one() -> None:
    reply = await ask(guard(TOKEN), "/search", headers=bearer(TOKEN) | {"x-api-key": TOKEN})
    assert (reply.status, reply.json) == (401, {"detail": ONE})
    twice = {"headers": [(b"x-api-key", TOKEN.encode())] * 2}
    with pytest.raises(Unauthorized, match=ONE):
        Keys.of(TOKEN).account(twice)


async def account_of(keys: Keys, headers: Headers, path: str = "/prepare") -> Reply:
    async def tell(scope: Scope, receive: Receive, send: Send) -> None:
        await answer(send, 200, scope["state"]["account"])

    return await ask(
        Access(tell, keys, Windows(0), shared=frozenset({"prepare", "lessons"})), path, headers=headers
    )


async def test_a_key_stands_for_its_account_which_has_nothing_but_its_memory() -> None:
    keys = Keys.of(TOKEN, [("acme", "k1"), ("acme", "k2"), ("local", "k3")])
    for key, account in ((TOKEN, LOCAL), ("k1", "acme"), ("k2", "acme"), ("k3", LOCAL)):
        assert (await account_of(keys, {"x-api-key": key})).json == {"detail": account}
    assert (await account_of(keys, {"x-api-key": "k1"}, "/lessons/1/sources")).status == 200
    for path in ("/search", "/status", "/openapi.json", "/", "//search", "/preparex", "*"):
        assert (await account_of(keys, {"x-api-key": "k1"}, path)).status == 403, path
        assert (await account_of(keys, {"x-api-key": "k3"}, path)).status == 200, path


async def test_where_only_other_accounts_have_keys_nobody_else_is_let_in() -> None:
    keys = Keys.of(None, [("acme", "k1")])
    assert (await account_of(keys, {})).status == 401
    assert (await account_of(keys, {"x-api-key": "k2"})).status == 401
    assert (await account_of(keys, bearer("k1"))).json == {"detail": "acme"}


async def test_where_there_are_no_keys_any_is_as_good_as_none() -> None:
    for headers in ({}, {"x-api-key": "any"}, bearer("any")):
        assert (await account_of(Keys(), headers)).json == {"detail": LOCAL}


async def test_health_is_never_guarded() -> None:
    strict = guard(TOKEN, limit=1, hosts=HOSTS)
    for _ in range(5):
        reply = await ask(strict, "/health", headers={"host": "evil.example", "sec-fetch-site": "cross-site"})
        assert reply.status == 200
    assert (await ask(strict, "/health/", headers={"host": "localhost"})).status == 401


async def test_a_page_without_data_needs_no_token_and_may_be_linked_to() -> None:
    reply = await ask(guard(TOKEN), "/page", headers={"sec-fetch-site": "cross-site"})
    assert reply.status == 200
    assert (await ask(guard(limit=1, hosts=HOSTS), "/page", headers={"host": "evil.example"})).status == 421


async def test_a_client_has_so_many_requests_in_a_window() -> None:
    clock = Clock()
    limited = Access(well, Keys(), Windows(2, clock=clock))

    async def asked(peer: str = "10.0.0.1", **headers: str) -> Reply:
        return await ask(limited, "/search", peer=peer, headers=headers)

    assert [(await asked()).status, (await asked()).status] == [200, 200]
    clock.now += 17.5
    refused = await asked(**{"x-forwarded-for": "9.9.9.9", "forwarded": "for=9.9.9.9"})
    assert (refused.status, refused.headers["retry-after"]) == (429, "43")
    assert refused.json == {"detail": "Too many requests."}
    assert (await asked("10.0.0.2")).status == 200
    clock.now += WINDOW - 17.5
    assert [(await asked()).status for _ in range(3)] == [200, 200, 429]


async def test_requests_without_the_token_count_too() -> None:
    limited = guard(TOKEN, limit=2)
    assert [(await ask(limited, "/x", headers=bearer("guess"))).status for _ in range(3)] == [401, 401, 429]
    assert (await ask(limited, "/x", headers=bearer(TOKEN))).status == 429


async def test_an_ipv6_network_is_one_client_and_a_mapped_address_is_the_ipv4_one() -> None:
    limited = guard(limit=1)
    peers = ["2001:db8::1", "2001:db8::ffff", "2001:db8:0:1::1", "::ffff:10.0.0.1", "10.0.0.1", None, None]
    assert [(await ask(limited, "/x", peer=peer)).status for peer in peers] == [
        200,
        429,
        200,
        200,
        429,
        200,
        429,
    ]


def test_the_memory_of_clients_has_a_bound_and_the_oldest_window_makes_room() -> None:
    clock = Clock()
    windows = Windows(1, clock=clock)
    for number in range(MOST_CLIENTS):
        clock.now += 0.001
        assert not windows.wait(str(number))
    assert windows.wait("0")
    clock.now += WINDOW - 0.001 * MOST_CLIENTS + 0.0015
    assert not windows.wait("0")  # a new window, which is the youngest now
    assert windows.wait("5")
    assert not windows.wait("one more")
    assert len(windows._counted) == MOST_CLIENTS
    assert windows.wait("0")
    assert not windows.wait("1")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "localhost.evil.example", "10.0.0.1", "", "[", "a@"]
)
async def test_another_host_name_is_not_answered_to(host: str) -> None:
    reply = await ask(guard(hosts=HOSTS), "/search", headers={"host": host})
    assert reply.status == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8765", "127.0.0.1:8765", "127.1.2.3", "[::1]:8765"])
async def test_the_machines_own_names_are(host: str) -> None:
    assert (await ask(guard(hosts=HOSTS), "/search", headers={"host": host})).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "https://localhost:8765"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://[evil"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://127.0.0.1:8765", "sec-fetch-site": "cross-site"},
    ],
)
@pytest.mark.parametrize("token", [None, TOKEN])
async def test_another_sites_page_may_not_ask(headers: Headers, token: str | None) -> None:
    reply = await ask(guard(token), "/eval", headers=headers | bearer(TOKEN))
    assert reply.status == 403
    assert not any(name.startswith("access-control") for name in reply.headers)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://127.0.0.1:8765", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
        {"host": "notes.example.org", "origin": "https://notes.example.org"},
    ],
)
async def test_our_own_page_may(headers: Headers) -> None:
    assert (await ask(guard(), "/eval", headers=headers)).status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-length": "2"}, 415),
        ({"content-length": "2", "content-type": "text/plain"}, 415),
        ({"content-length": "2", "content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-length": "2", "content-type": "text/plain; a=application/json"}, 415),
        ({"transfer-encoding": "chunked"}, 415),
        ({"content-length": "2", "content-type": "Application/JSON; charset=utf-8"}, 200),
        ({"content-length": "0"}, 200),
        ({}, 200),
    ],
)
async def test_what_is_sent_is_json_or_nothing(headers: Headers, status: int) -> None:
    reply = await ask(guard(), "/index", method="POST", headers=headers)
    assert reply.status == status
    assert (reply.headers.get("connection") == "close") is (status == 415)
