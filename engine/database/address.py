"""Where the server is and as whom to log in. Passwords enter here and never leave in any text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.errors import DatabaseRefused

if TYPE_CHECKING:
    from collections.abc import Mapping

ADMIN = "noctuary_admin"
"""Owner of the embedded server; only migrations and set-up work as it."""

ENGINE = "noctuary_engine"
"""The role all other work is done as: no superuser and no owner, so that row-level security and
the append-only audit hold against the engine itself."""

SCHEMA = "noctuary"

# A laptop that slept or a router that forgot must not leave the feed listening to nobody.
_KEEPALIVE = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}
_CONNECT_SECONDS = "10"

# Said in full, for what is not said libpq takes from PG* variables, which are about other servers.
_PLAIN_SOCKET = {
    "hostaddr": "",
    "connect_timeout": "5",
    "sslmode": "disable",
    "gssencmode": "disable",
    "channel_binding": "disable",
    "require_auth": "none",
    "target_session_attrs": "any",
}

Params = dict[str, str]


@dataclass(frozen=True, slots=True)
class Address:
    """A database. `where` may be shown; `params` are libpq's and may hold a password."""

    where: str
    embedded: bool
    params: Mapping[str, str] = field(repr=False)
    extra_schema: str = ""
    """Quoted name of the schema pgvector lives in, when it is not `public`."""

    @classmethod
    def of_folder(cls, folder: str, host: str, database: str) -> Address:
        """The embedded server whose socket lies in the folder `host`."""
        params = _PLAIN_SOCKET | {"host": host, "port": "5432", "dbname": database, "user": ADMIN}
        return cls(where=folder, embedded=True, params=params)

    @classmethod
    def of_url(cls, url: str) -> Address:
        """The server `DATABASE_URL` names.

        Raises:
            DatabaseRefused: `url` is no PostgreSQL address; its text is not repeated in the error,
                for it may hold a password.
        """
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict

        try:
            # Other libraries write the name of their driver into the scheme.
            given = conninfo_to_dict(re.sub(r"^(postgres(?:ql)?)\+\w+://", r"\1://", url.strip()))
        except ProgrammingError:
            given = {}
        if not given:
            raise DatabaseRefused(
                "DATABASE_URL is not a PostgreSQL address.",
                remedy="Write it as postgresql://user:password@host:5432/database, with special characters "
                "of the password percent-encoded.",
            )
        params = {"connect_timeout": _CONNECT_SECONDS, **_KEEPALIVE}
        params.update({name: str(value) for name, value in given.items() if value is not None})
        return cls(where=_shown(params), embedded=False, params=params)

    def admin(self, application: str) -> Params:
        """Parameters of a connection that sets up and migrates."""
        return self._with(application, f"-c search_path={SCHEMA},public{self._extra()}")

    def engine(self, application: str) -> Params:
        """Parameters of a connection that works as the engine role.

        The role is part of the start of the session, so `RESET ROLE` leads back to it and not to
        the login role.
        """
        options = f"-c search_path={SCHEMA},public{self._extra()}"
        if not self.embedded:
            return self._with(application, f"{options} -c role={ENGINE}")
        return self._with(application, options) | {"user": ENGINE}

    def scrub(self, text: str) -> str:
        """`text` without the password, should a server ever have echoed it."""
        password = self.params.get("password", "")
        return text.replace(password, "***") if password else text

    def _extra(self) -> str:
        escaped = re.sub(r"([\\\s])", r"\\\1", self.extra_schema)
        return f",{escaped}" if escaped else ""

    def _with(self, application: str, options: str) -> Params:
        own = f"{self.params.get('options', '')} {options}".strip()
        return {
            **self.params,
            "options": own,
            "application_name": application,
            "client_encoding": "UTF8",
        }


def _shown(params: Mapping[str, str]) -> str:
    user, host = params.get("user", ""), params.get("host") or params.get("hostaddr", "")
    port, database = params.get("port", ""), params.get("dbname", "")
    login = f"{user}@" if user else ""
    return f"{login}{host or 'local socket'}{':' + port if port else ''}/{database or user}"
