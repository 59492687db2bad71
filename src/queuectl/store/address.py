"""Addresses of databases: parse and redact them.

Nothing here connects or loads a driver. Malformed addresses are refused before a driver or a file system could quote them: an address may
contain a password, and in a malformed one it may be anywhere.
"""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple

from queuectl import errors

HIDDEN: Final = "***"

# Patterns as text: most commands use the default database, and need none of them compiled.
_SQLITE: Final = r"(?i)sqlite:///"
_POSTGRES: Final = r"(?i)(postgres(?:ql)?)://"
_SCHEME: Final = r"([A-Za-z][A-Za-z0-9+.-]*)://"
# Malformed PostgreSQL addresses that would be taken for a file: postgresql:/…, postgresql//…, user:password@host/…, and the
# keywords of libpq, host=… password=….
_MISSPELT: Final = r"(?is)postgres\w*(?::|//)|(?://)?[^/:@]*:.*@"
_KEYWORDS: Final = (
    r"(?is)\s*(?:host|hostaddr|port|user|password|passfile|dbname|service|sslmode|options)\s*=|(?![./]).*\bpassword\s*="
)
# The password of a URL is between the first colon and the last @. It may contain an unescaped @, / or ?, and must not be shown then
# either.
_CREDENTIALS: Final = r"(?s)^(\w+://[^:?]*):.*@"
_PARAMETER: Final = r"([?&])([^=&]*)=([^&]*)"
# Parameters whose values are shown. Any other one may be a password with a misspelt name.
_OPEN: Final = frozenset(
    (
        *("host", "hostaddr", "port", "dbname", "user", "service", "options", "application_name", "connect_timeout"),
        *("sslmode", "sslrootcert", "sslcert", "sslcrl", "sslsni", "channel_binding", "gssencmode", "client_encoding"),
        *("target_session_attrs", "load_balance_hosts", "keepalives", "keepalives_idle", "keepalives_interval"),
        *("keepalives_count", "tcp_user_timeout"),
    )
)
_AUTHORITY: Final = r"^(\w+://)([^/?]*)"
_HOST: Final = r"(\[[^\]]*\]|[^:\[\]]*)(?::([0-9]{0,5}))?"

_FORM: Final = "postgresql://USER@HOST/DATABASE"


class SqliteFile(NamedTuple):
    path: str

    def shown(self) -> str:
        return self.path


class PostgresUrl(NamedTuple):
    """A URL for libpq. It may contain a password: use `shown` in messages."""

    url: str

    def shown(self) -> str:
        return shown(self.url)

    def __repr__(self) -> str:
        return f"PostgresUrl({self.shown()!r})"


Address = SqliteFile | PostgresUrl


def parse_address(text: str, *, base: str = "") -> Address:
    """The database that `text` names: a URL, or the path of a file, relative to `base`.

    Raises StoreUnsupported for any other scheme, InvalidInput for a malformed PostgreSQL address.
    """
    if found := re.match(_SQLITE, text):
        return SqliteFile(os.path.abspath(os.path.join(base, text[found.end() :])))
    if found := re.match(_POSTGRES, text):
        url = found[1].lower() + text[found.end(1) :]  # libpq wants lower case
        _check(url)
        return PostgresUrl(url)
    if found := re.match(_SCHEME, text):
        raise errors.StoreUnsupported(found[1])
    if re.match(_MISSPELT, text) or re.match(_KEYWORDS, text):
        raise errors.InvalidInput(
            "the address of the database",
            "neither a URL of PostgreSQL nor the path of a file",
            hint=f"write {_FORM}; the password better in ~/.pgpass. A file of that name: begin with ./",
        )
    return SqliteFile(os.path.abspath(os.path.join(base, text)))


def _check(url: str) -> None:
    """Refuse what libpq would split at the wrong place and then quote: a part of the password as a host or a port."""
    rest = url.partition("://")[2].partition("?")[0]
    authority, _, path = rest.partition("/")
    if authority.count("@") > 1 or "@" in path:
        raise errors.InvalidInput(
            f"the address {shown(url)}",
            "an @ or a / stands in the user, password or database as it is",
            hint="write @ as %40, / as %2F and : as %3A there, or keep the password in ~/.pgpass",
        )
    hosts = authority.rpartition("@")[2]
    for host in hosts.split(","):
        found = re.fullmatch(_HOST, host)
        if found is None or (found[2] and not 0 < int(found[2]) < 65536):
            raise errors.InvalidInput(
                f"the address {shown(url)}",
                "what follows the host is not a port",
                hint=f"a port is a number from 1 to 65535: {_FORM.replace('HOST', 'HOST:5432')}; in a password / is %2F, ? is %3F",
            )


def shown(text: str) -> str:
    """An address without its secrets, for messages and logs."""
    if not re.match(_POSTGRES, text):
        return text
    # Rather too much than too little: an @ in a parameter hides the host too.
    text = re.sub(_CREDENTIALS, rf"\1:{HIDDEN}@", text)
    text = re.sub(_AUTHORITY, _without_false_ports, text)
    return re.sub(_PARAMETER, lambda found: found[0] if found[2] in _OPEN else f"{found[1]}{found[2]}={HIDDEN}", text)


def without_secrets(text: str) -> str:
    """The same address without the secrets, for users who have their own password."""
    hidden = shown(text)
    if hidden == text:
        return text
    address, question, rest = hidden.replace(f":{HIDDEN}@", "@").partition("?")
    kept = "&".join(part for part in rest.split("&") if not part.endswith(f"={HIDDEN}"))
    return address + question * bool(kept) + kept


def _without_false_ports(found: re.Match[str]) -> str:
    """`user:password/database`, with the host forgotten, has the password where the port should be."""
    user, at, hosts = found[2].rpartition("@")
    kept = [host if re.fullmatch(_HOST, host) else f"{host.partition(':')[0]}:{HIDDEN}" for host in hosts.split(",")]
    return f"{found[1]}{user}{at}{','.join(kept)}"
