"""Where the server listens, and what is refused in one sentence before anything is opened."""

from __future__ import annotations

import socket

import pytest

from engine.doors.http import listening
from engine.errors import ServeError


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "0"])
def test_without_a_token_only_this_machine_is_served(host: str) -> None:
    with pytest.raises(ServeError, match=r"can be reached from other machines.*Set API_TOKEN"):
        listening.bind(host, 0, guarded=False)
    place = listening.bind(host, 0, guarded=True)
    assert place.hosts is None
    place.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost", "::1"])
def test_this_machine_is_served_without_one_by_its_own_names(host: str) -> None:
    place = listening.bind(host, 0, guarded=False)
    try:
        assert place.hosts == {"localhost", host}
        port = place.sockets[0].getsockname()[1]
        assert place.url == f"http://{f'[{host}]' if ':' in host else host}:{port}"
        assert {each.getsockname()[1] for each in place.sockets} == {port}
        with socket.create_connection((host, port), timeout=5):
            pass
    finally:
        place.close()


def test_a_port_in_use_is_one_sentence() -> None:
    first = listening.bind("127.0.0.1", 0, guarded=False)
    port = first.sockets[0].getsockname()[1]
    with pytest.raises(
        ServeError, match=f"Port {port} of 127.0.0.1 is in use by another program. Stop that one"
    ):
        listening.bind("127.0.0.1", port, guarded=False)
    first.close()
    listening.bind("127.0.0.1", port, guarded=False).close()


@pytest.mark.parametrize("host", ["nowhere.invalid", "256.1.1.1", "a b", "x" * 300, "\u202e", "127.0.0.1/8"])
def test_a_host_that_is_none_is_one_sentence(host: str) -> None:
    with pytest.raises(ServeError, match="cannot be found: "):
        listening.bind(host, 0, guarded=True)


def test_an_address_of_another_machine_is_one_sentence() -> None:
    with pytest.raises(ServeError, match=r"192\.0\.2\.1 is no address of this machine"):
        listening.bind("192.0.2.1", 0, guarded=True)


def test_a_name_with_an_address_that_is_not_here_is_served_on_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    family, kind = socket.AF_INET, socket.SOCK_STREAM
    monkeypatch.setattr(
        socket, "getaddrinfo",
        lambda *_, **__: [(family, kind, 6, "", ("127.99.0.1", 0)), (family, kind, 6, "", ("127.0.0.1", 0))],
    )  # fmt: skip
    real = listening._one
    monkeypatch.setattr(listening, "ABSENT", frozenset({1234}))

    def one(family: socket.AddressFamily, address: tuple[str | int, ...]) -> socket.socket:
        if address[0] == "127.99.0.1":
            raise OSError(1234, "absent")
        return real(family, address)

    monkeypatch.setattr(listening, "_one", one)
    place = listening.bind("both", 0, guarded=False)
    assert [each.getsockname()[0] for each in place.sockets] == ["127.0.0.1"]
    place.close()


async def test_answers_are_not_held_back_by_the_system() -> None:
    import asyncio

    place = listening.bind("127.0.0.1", 0, guarded=False)
    accepted: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    class Taking(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            taken = transport.get_extra_info("socket")
            accepted.set_result(taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            transport.close()

    server = await asyncio.get_running_loop().create_server(Taking, sock=place.sockets[0])
    _, writer = await asyncio.open_connection(*place.sockets[0].getsockname())
    assert await accepted
    writer.close()
    server.close()
    await server.wait_closed()
