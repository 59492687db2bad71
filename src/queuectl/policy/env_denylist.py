"""Environment variables that make a program load or run other code.

A job that may run certain programs only must not choose the code that they load. A wildcard in `job-environment` of a policy never
covers these variables: each has to be named. docs/reference/loader-variables.md is generated from this module.

Such a list is never complete: SHAPES covers typical names of unlisted programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from queuectl.policy.pattern import matches

# By kind of program. `*` at the end or start of a name matches any characters. Case-insensitive. A line that is indented continues the
# one before it.
_TABLE: Final = """\
every program: PATH HOME TMPDIR XDG_* EDITOR VISUAL PAGER BROWSER TERMINAL SHELL COMSPEC PATHEXT
the dynamic linker and the C library: LD_* DYLD_* LIBPATH SHLIB_PATH GLIBC_* MALLOC_* GCONV_PATH GETCONF_DIR LOCPATH
  NLSPATH TEXTDOMAIN* HOSTALIASES LOCALDOMAIN NIS_PATH RES_OPTIONS RESOLV_* TZDIR FAKEROOT* FAKECHROOT* QEMU_* WINE*
shells: BASH_* BASHOPTS SHELLOPTS ENV PS0 PS1 PS2 PS3 PS4 PROMPT_COMMAND IFS CDPATH FPATH FCEDIT GLOBIGNORE EXECIGNORE
  HISTFILE INPUTRC ZDOTDIR fish_* __fish_*
terminals: TERMINFO* TERMCAP TERMPATH NCURSES_* SCREENRC SCREENDIR SYSSCREENRC TMUX*
pagers and manuals: LESS LESS_* LESSOPEN LESSCLOSE LESSKEY* LESSEDIT LESSECHO LESSHISTFILE LESSMETA* MANPAGER MANPATH
  MANOPT MANROFF* MAN_* GROFF_* TROFF* BAT_* DELTA_* SYSTEMD_* METAMAIL_* MAILCAP* MAILRC
editors: VIM* NVIM_* MYVIMRC EXINIT EMACS* ALTERNATE_EDITOR JED_* CSCOPE_* CTAGS
git and other version control: GIT_* GCM_* GH_* GLAB_* CVS* SVN_* HG* BZR_* BRZ_* FOSSIL_* P4* QUILT_*
ssh, rsync, sudo and remote shells: SSH_* SUDO_* RSYNC_* RSH REMOTE_SHELL
make and build tools: MAKE* MFLAGS GNUMAKEFLAGS CMAKE_* CTEST_* NINJA_* MESON_* PKG_CONFIG* CONFIG_SHELL CONFIG_SITE
  AUTOCONF AUTOMAKE AUTOM4TE* ACLOCAL* LIBTOOL* M4 M4PATH BAZEL_* SCONS* RAKEOPT CCACHE_* DISTCC_* ICECC* SCCACHE_*
compilers and linkers: CC CXX CPP FC F77 F90 AR AS LD NM RANLIB STRIP OBJCOPY CFLAGS CXXFLAGS CPPFLAGS FFLAGS FCFLAGS
  LDFLAGS LDLIBS LIBS CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH OBJC_INCLUDE_PATH COMPILER_PATH LIBRARY_PATH GCC_*
  COLLECT_* CLANG_* CCC_OVERRIDE_OPTIONS DEPENDENCIES_OUTPUT SUNPRO_DEPENDENCIES DEVELOPER_DIR SDKROOT TOOLCHAINS
  SWIFT_* LLVM_*
debuggers, tracers and sanitizers: GDB* LLDB_* VALGRIND_* STRACE_* PERF_* *SAN_OPTIONS *SAN_SYMBOLIZER_PATH
Python: PYTHON* PYTEST_* PY_* PYLINT* MYPY* VIRTUAL_ENV CONDA_* MAMBA_* PIP_* PIPENV_* PIPX_* POETRY_* UV_* TOX_*
  NOX_* TWINE_* SETUPTOOLS_* DISTUTILS_* COVERAGE_* COV_CORE_* IPYTHON* JUPYTER_* MPLCONFIGDIR MPLBACKEND NUMBA_*
  DJANGO_* FLASK_* CELERY_* GUNICORN_* UVICORN_* UWSGI_*
Perl: PERL* PAR_* HARNESS_* PROVE_*
Ruby: RUBY* GEM_* BUNDLE_* BUNDLER_* IRBRC PRYRC RBENV_* RVM_* SPEC_OPTS TESTOPTS
JavaScript: NODE_* NPM_* YARN_* PNPM_* NVM_* BUN_* DENO_* TS_NODE_* BABEL_* ELECTRON_* COREPACK_* ESLINT_* JEST_*
  MOCHA_*
Java and the JVM: JAVA_* _JAVA_* JDK_* JRE_* CLASSPATH JAVACMD MAVEN_* MVN_* M2_* GRADLE_* ANT_* SBT_* SCALA_*
  KOTLIN_* GROOVY_* JRUBY_* CATALINA_* LEIN_* CLJ_* CLOJURE_* HADOOP_* SPARK_*
Lua: LUA_* LUAROCKS_* LUAJIT_*
Tcl and Tk: TCL* TK_*
PHP: PHP_* PHPRC COMPOSER_* XDEBUG_*
R: R_* RSTUDIO_*
Julia, Octave and other numerics: JULIA_* OCTAVE_* MATLAB* MAXIMA_* GNUPLOT_* SAGE_* HDF5_* GDAL_* GRASS_*
OCaml: OCAML* CAML* OPAM*
Haskell: GHC* CABAL_* STACK_* HASKELL_*
Erlang and Elixir: ERL_* ERLANG_* ELIXIR_* MIX_* REBAR_* IEX_*
Go: GOFLAGS GOROOT GOPATH GOBIN GOENV GOPROXY GOTOOLCHAIN GOTOOLDIR GOCACHE GOCACHEPROG GOMODCACHE GOSUMDB GONOSUMDB
  GONOSUMCHECK GONOPROXY GOPRIVATE GOINSECURE GOVCS GOWORK GOAUTH GODEBUG GOEXPERIMENT GO111MODULE GCCGO CGO_*
Rust: CARGO* RUST*
.NET and Mono: DOTNET_* COMPLUS_* COR_* CORECLR_* NUGET_* MSBUILD* MONO_* ASPNETCORE_HOSTINGSTARTUP*
Lisp and Scheme: GUILE_* CHICKEN_* PLT* SBCL_* CLISP* GAMBOPT GAMBIT*
awk, grep and search tools: AWK* GAWK_* GREP_* EGREP_* RIPGREP_* FZF_* ACKRC ACK_*
archivers and compressors: TAR_* TAPE GZIP BZIP BZIP2 XZ_* ZSTD_* LZ4_* LZOP ZIP ZIPOPT ZIPINFO* UNZIP UNZIPOPT RAR
  PARALLEL* LS_OPTIONS DIFF_OPTIONS
downloads and mail: WGETRC SYSTEM_WGETRC WGET_* CURL_* LFTP_* LYNX_* W3M* WWW_* NAIL*
backups: RESTIC_* BORG_* RCLONE_* DUPLICITY_* KOPIA_*
cryptography, authentication and directories: OPENSSL_* SSLKEYLOGFILE GNUPGHOME GPG_* PKCS11* P11_* SOFTHSM* NSS_*
  KRB5* GSS_* SASL_* LDAPCONF LDAPRC LDAPTLS_* LDAPSASL_*
PostgreSQL: PSQL* PGSYSCONFDIR PGSERVICEFILE PGSERVICE PGOPTIONS PGLOCALEDIR PGSSLKEY PGGSSLIB PGPASSFILE PG_CONFIG
  PGADMIN*
other databases: MYSQL_* LIBMYSQL_* MARIADB_* SQLITE_* ORACLE_* TNS_ADMIN SQLPATH ODBC* FREETDS* REDISCLI_*
containers and clusters: DOCKER_* COMPOSE_* BUILDX_* BUILDKIT_* PODMAN_* BUILDAH_* CONTAINER_HOST CONTAINER_SSHKEY
  CONTAINERS_* REGISTRY_AUTH_FILE CNI_* KUBE* HELM_*
infrastructure tools: ANSIBLE_* TF_* TERRAFORM_* TERRAGRUNT_* PACKER_* VAGRANT_* PULUMI_* SALT_* PUPPET* FACTER*
  CHEF_* VAULT_CONFIG_PATH NIX_* HOMEBREW_* APT_* DPKG_* DEBCONF_* RPM_* NEEDRESTART_*
clouds: AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE AWS_PAGER AWS_DATA_PATH AWS_CLI_* BOTO_* CLOUDSDK_*
  GOOGLE_APPLICATION_CREDENTIALS GOOGLE_EXTERNAL_ACCOUNT_* AZURE_CONFIG_DIR AZURE_EXTENSION_DIR
graphical toolkits and the desktop: GTK* GDK_* GIO_* GI_* GSETTINGS_* GST_* GNOME_* GIMP* PANGO_* QT_* QTDIR QML* KDE*
  DBUS_* SDL_* XAPPLRESDIR XENVIRONMENT XLOCALEDIR XFILESEARCHPATH XUSERFILESEARCHPATH XMODIFIERS LIBGL_* MESA_* VK_*
  EGL_* __EGL_* __GLX_* LIBVA_* VDPAU_* OCL_* OPENCL_* CUDA_INJECTION* ALSA_* PULSE_* LADSPA_* FONTCONFIG_*
documents and images: TEXINPUTS* TEXMF* TEXEDIT TEXDOC* TEXFONTS TEXFORMATS TEXPOOL TEXCONFIG TEXPSHEADERS BIBINPUTS
  BSTINPUTS MFINPUTS MPINPUTS shell_escape* openin_any openout_any GS_* MAGICK_* GVBINDIR
message passing: OMPI_* PMIX_* PRTE_* MCA_* I_MPI_* UCX_*
queuectl: QUEUECTL_*
"""

DENYLIST: Final[Mapping[str, Sequence[str]]] = {
    program: names.split()
    for program, _, names in (row.partition(": ") for row in _TABLE.replace("\n ", "").splitlines())
}

# Typical names of such variables. A wildcard covers them only if it has its own prefix (REPORT_*, not * or R*).
SHAPES: Final = (
    "*PATH", "*_PATHS", "*_DIRS", "*_LIBRARY", "*_LIBS", "*_PRELOAD*", "*_PLUGIN*", "*_MODULE*", "*_EXTENSION*", "*_AGENT*",
    "*_OPTIONS", "*_OPTS", "*_OPT", "*FLAGS", "*_ARGS", "*_CONFIG*", "*_CONF", "*RC", "*_INIT*", "*_STARTUP*", "*_PROFILE*",
    "*_HOOK*", "*_COMMAND*", "*_CMD", "*_EXEC*", "*_PROGRAM", "*_WRAPPER", "*_LAUNCHER", "*_HELPER", "*_HANDLER", "*_INTERPRETER",
    "*_EDITOR", "*_PAGER", "*_BROWSER", "*_SHELL", "*_RSH", "*_SSH", "*_ASKPASS", "*_PASSCOMMAND", "*_EVAL", "*_HOME", "*_ROOT",
)  # fmt: skip

_NAMES: Final = tuple(name.upper() for names in DENYLIST.values() for name in names)
_WHOLE: Final = frozenset(name for name in _NAMES if "*" not in name)
_PREFIXES: Final = tuple(name[:-1] for name in _NAMES if name.endswith("*"))
_SUFFIXES: Final = tuple(name[1:] for name in _NAMES if name.startswith("*"))


def is_allowed(allowed: Sequence[str], variable: str) -> bool:
    """Whether a job may set the variable. A wildcard never covers one that loads code."""
    return variable in allowed or any(_allows(pattern, variable) for pattern in _matching(allowed, variable))


def is_withheld(allowed: Sequence[str], variable: str) -> bool:
    """Whether a wildcard matches the variable but does not cover it, because it loads code."""
    return not is_allowed(allowed, variable) and any(_matching(allowed, variable))


def loads_code(variable: str) -> bool:
    name = variable.upper()
    return name in _WHOLE or name.startswith(_PREFIXES) or name.endswith(_SUFFIXES)


def is_wildcard(pattern: str) -> bool:
    return "*" in pattern or "?" in pattern


def _matching(allowed: Sequence[str], variable: str) -> Iterator[str]:
    return (pattern for pattern in allowed if matches(pattern, variable))


def _allows(pattern: str, variable: str) -> bool:
    if loads_code(variable):
        return False
    head, underscore, _ = pattern.replace("?", "*").partition("*")[0].lstrip("_").partition("_")
    has_own_prefix = bool(head and underscore)
    return has_own_prefix or not any(matches(shape, variable.upper()) for shape in SHAPES)
