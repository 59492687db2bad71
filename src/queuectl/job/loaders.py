"""Variables by which a program is made to load other code, or to find another program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from queuectl.job.pattern import fits

# By these a program is made to load other code, or to find another program. No wildcard covers them: each has to be named.
LOADERS: Final = (
    "BASHOPTS", "BASH_ENV", "BASH_FUNC_*", "CDPATH", "CLASSPATH", "DYLD_*", "EDITOR", "ENV", "GCONV_PATH", "GIT_*", "GLIBC_*",
    "GLIBC_TUNABLES", "HOME", "IFS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "LD_*", "LESSOPEN", "LESSCLOSE", "LOCPATH", "LUA_*",
    "MALLOC_*", "NLSPATH", "NODE_*", "OPENSSL_*", "PAGER", "PATH", "PERL*", "PHPRC", "PHP_*", "PS4", "PYTHON*", "RSYNC_*", "RUBY*",
    "SHELL", "SHELLOPTS", "SSH_*", "TAR_OPTIONS", "TCLLIBPATH", "VISUAL", "XDG_*", "ZDOTDIR", "_JAVA_OPTIONS",
)  # fmt: skip


def covers(allowed: Sequence[str], variable: str) -> bool:
    """Whether a job may set it."""
    if variable in allowed:
        return True
    return not is_loader(variable) and any(fits(pattern, variable) for pattern in allowed)


def is_loader(variable: str) -> bool:
    return any(fits(loader, variable) for loader in LOADERS)
