"""The files of a project: those that may be indexed, and those that were skipped with the reason.

The rules are git's: `.gitignore` of each folder, of the folders above up to the checkout's, and
`.git/info/exclude`. An ignored file is left out without a word, a file of keys or passwords (told
by its name) is skipped. No link is followed: what one points to within the project is found where
it is, and what lies outside is not of the project.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from anaphora.language.word_lists import words
from anaphora.values.files import Skipped

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


_SECRET_NAMES: Final = words(
    ".netrc _netrc .npmrc .pypirc .pgpass pgpass.conf .my.cnf .mylogin.cnf .git-credentials "
    ".dockercfg .dockerconfigjson .htpasswd .s3cfg .boto .passwd-s3fs .vault-token .vault_pass "
    ".ftpconfig .remote-sync.json sftp-config.json .secrets .credentials credentials "
    "credentials.csv rootkey.csv accesskeys.csv application_default_credentials.json "
    "credentials.tfrc.json .terraformrc keystore.properties key.properties kubeconfig "
    "id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk id_xmss"
)
_SECRET_ENDINGS: Final = (
    ".pem", ".key", ".p8", ".p12", ".pk8", ".pkcs12", ".pfx", ".ppk", ".jks", ".bks", ".keystore",
    ".kdb", ".kdbx", ".ovpn", ".kubeconfig", ".tfstate", ".tfstate.backup",
)  # fmt: skip
"""Keys, stores of keys, and what is written with the secrets in it."""
_SECRET_FORMS: Final = re.compile(
    r"\.env(?:rc|\..+)?|.+\.env|\.?(?:credentials?|secrets?)(?:\..+)?\.(?:json|ya?ml|toml|ini|cfg"
    r"|conf|properties|xml|db|txt)|client_secrets?.*\.json|service[_-]?account.*\.json"
    r"|.+_accesskeys\.csv|\..+_history"
)
_SECRET_PLACES: Final = re.compile(
    r"(?:^|/)(?:\.(?:ssh|gnupg|aws|azure)|\.config/(?:gcloud|gh)|\.docker/config\.json"
    r"|\.kube/config|\.m2/settings\.xml|\.(?:composer|codex)/auth\.json|\.vscode/sftp\.json"
    r"|\.(?:cargo|gem)/credentials[^/]*)(?:/|$)|^auth\.json$"
)
_TEMPLATE: Final = re.compile(
    r"(?:^|[._-])(?:examples?|samples?|templates?|tmpl|tpl|dist|defaults?|schema|skeleton)"
    r"(?:$|[._-])"
)


def is_secret_file(path: str) -> bool:
    """Whether a file (or folder) of a project holds secrets by its name or its place."""
    lower_path = path.lower()
    name = lower_path.rpartition("/")[2]
    if name.endswith(_SECRET_ENDINGS) or _SECRET_PLACES.search(lower_path):
        return True
    return (
        name in _SECRET_NAMES or _SECRET_FORMS.fullmatch(name) is not None
    ) and not _TEMPLATE.search(name)


_SHORT_PARTS: Final = re.compile(r"(?:[\w-]{0,15}[./])*[\w-]{0,15}")
_FEW_DIGITS: Final = 8


@lru_cache(maxsize=4_096)
def without_secret_names(path: str) -> str:
    """A path with its secrets taken out: the same path where it gives none away."""
    # Most names are no longer than the shortest token, and have fewer digits than any number.
    digits = sum(character.isdigit() for character in path)
    if digits <= _FEW_DIGITS and _SHORT_PARTS.fullmatch(path):
        return path
    from anaphora.ingest.secrets.redacting import redact_path

    return redact_path(path).text


MAX_BYTES: Final = 1_000_000
"""A larger file is skipped; of a notebook this holds of what is read of it."""

MAX_NOTEBOOK_BYTES: Final = 32_000_000
"""The same for a notebook, whose outputs are not read."""


def most_bytes(path: str) -> int:
    """How many bytes a file may have, by its name."""
    return MAX_NOTEBOOK_BYTES if is_notebook(path) else MAX_BYTES


def is_notebook(path: str) -> bool:
    """Whether a file is a notebook of Jupyter, by its name."""
    return path.lower().endswith(".ipynb")


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that may be indexed; `path` is relative to the root, with forward slashes."""

    path: str
    absolute: Path


@dataclass(frozen=True, slots=True)
class FoundFolder:
    """A folder that was looked into; `path` is relative to the root, which itself is "."."""

    path: str


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of a file, and the SHA-256 of its bytes, in hexadecimal.

    Lines always end in line feeds; there is no byte order mark.
    """

    text: str
    sha: str


ALWAYS_IGNORED: Final = words(
    ".git .hg .svn .bzr .jj node_modules bower_components jspm_packages .venv venv .virtualenv "
    "__pycache__ __pypackages__ .mypy_cache .ruff_cache .pytest_cache .hypothesis .tox .nox "
    ".import_linter_cache .ipynb_checkpoints .eggs .cache .parcel-cache .turbo .next .nuxt "
    ".svelte-kit .gradle .terraform .serverless .dart_tool .pnpm-store .yarn .nyc_output "
    ".coverage htmlcov site-packages .anaphora .DS_Store Thumbs.db"
)
"""Names of files and folders that are never part of what people wrote."""
_BUILT: Final = frozenset({"build", "dist", "target", "out", "obj", "_build", "coverage"})
"""Folders of build output by habit: left out unless they hold Python or package files."""
_IS_PACKAGE: Final = frozenset({"__init__.py", "package.json", "pyproject.toml", "Cargo.toml"})
_BINARY_ENDINGS: Final = words(
    ".png .jpg .jpeg .gif .bmp .ico .icns .webp .avif .tif .tiff .psd .pdf .zip .gz .tgz .bz2 .xz "
    ".zst .7z .rar .tar .jar .war .whl .egg .class .pyc .pyo .pyd .so .dylib .dll .exe .a .o .lib "
    ".bin .dat .db .sqlite .sqlite3 .parquet .arrow .npy .npz .pkl .pickle .pt .pth .onnx .gguf "
    ".safetensors .h5 .woff .woff2 .ttf .otf .eot .mp3 .mp4 .m4a .wav .ogg .flac .avi .mov .mkv "
    ".webm .wasm .doc .docx .xls .xlsx .ppt .pptx .odt .ods .keystore .jks .p12 .pfx"
)
_LOCK_FILES: Final = words(
    "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb uv.lock "
    "poetry.lock pdm.lock pipfile.lock cargo.lock composer.lock gemfile.lock go.sum "
    "requirements.lock mix.lock flake.lock podfile.lock packages.lock.json deno.lock "
    "pubspec.lock gradle.lockfile"
)
_MOST_RULES: Final = 1_000_000
"""Bytes of an ignore file that are read."""
_MOST_FOLDERS: Final = 100
"""Folders within one another."""


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules of one ignore file. `base` is its folder relative to the walk's root.

    `above` is what stands before a path of the walk for a folder further up: "src/" if the root is
    the folder `src` of it.
    """

    spec: GitIgnoreSpec
    base: str
    above: str = ""

    def verdict(self, path: str) -> bool | None:
        """Whether the last rule that fits ignores the path; None if no rule fits."""
        if self.above:
            return self.spec.check_file(self.above + path).include
        return self.spec.check_file(path[len(self.base) :]).include


def walk(root: Path, *, telling: bool = False) -> Iterator[FoundFile | FoundFolder | Skipped]:
    """The files and folders under `root` in order of their paths, and what was skipped, and why.

    With `telling` ignored files are reported ("ignored", a folder as one), and folders that hold
    build output by habit are looked into.

    Reasons: "secret" (keys and passwords by its name; a whole folder too), "secret_name" (the name
    gives a secret away: reported without it), "too_large" (more than `MAX_BYTES`), "binary" (by
    its ending; `read` sees the rest), "lock_file", "link", "link_outside", "link_cycle",
    "broken_link", "not_a_file" (a socket, a pipe, a device), "unreadable", "gone", "odd_name" (no
    Unicode text) and "too_deep". A root that is no folder, or that went away, gives one `Skipped`
    of path ".".
    """
    try:
        real = root.resolve(strict=True)
    except (OSError, RuntimeError):
        yield Skipped(".", "gone")
        return
    if not real.is_dir():
        yield Skipped(".", "not_a_folder")
        return
    yield from _walk_folder(real, real, "", _read_rules_above(real), 0, telling)


def _walk_folder(
    root: Path, folder: Path, base: str, above: tuple[_Rules, ...], depth: int, telling: bool
) -> Iterator[FoundFile | FoundFolder | Skipped]:
    """A folder and what is in it; `base` is its path with a slash at the end, "" for the root."""
    if depth > _MOST_FOLDERS:
        yield Skipped(base.rstrip("/"), "too_deep")
        return
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda child: child.name)
    except OSError as error:
        yield Skipped(base.rstrip("/") or ".", _explain(error))
        return
    yield FoundFolder(base.rstrip("/") or ".")
    ignore_rules = _read_rules(folder / ".gitignore", base)
    rules = above if ignore_rules is None else (*above, ignore_rules)
    for child in entries:
        if child.name not in ALWAYS_IGNORED:
            yield from _walk_entry(root, child, base + child.name, rules, depth, telling)


def _walk_entry(
    root: Path,
    entry: os.DirEntry[str],
    path: str,
    rules: tuple[_Rules, ...],
    depth: int,
    telling: bool,
) -> Iterator[FoundFile | FoundFolder | Skipped]:
    try:
        folder = entry.is_dir(follow_symlinks=False)
        if _is_ignored(path + "/" if folder else path, rules):
            if telling:
                yield Skipped(path, "ignored")
            return
        if (printable := path.encode("utf-8", "backslashreplace").decode()) != path:
            yield Skipped(printable, "odd_name")
        elif (clean_name := without_secret_names(entry.name)) != entry.name:
            yield Skipped(path[: -len(entry.name)] + clean_name, "secret_name")
        elif is_secret_file(path):
            yield Skipped(path, "secret")
        elif entry.is_symlink():
            yield Skipped(path, _check_link(root, Path(entry.path)))
        elif not folder:
            yield _check_file(entry, path)
        elif telling or not _is_output(entry):
            yield from _walk_folder(root, Path(entry.path), path + "/", rules, depth + 1, telling)
    except OSError as error:
        yield Skipped(path, _explain(error))


def _check_file(entry: os.DirEntry[str], path: str) -> FoundFile | Skipped:
    facts = entry.stat(follow_symlinks=False)
    if not stat.S_ISREG(facts.st_mode):
        return Skipped(path, "not_a_file")
    name = entry.name.lower()
    if name in _LOCK_FILES:
        return Skipped(path, "lock_file")
    if PurePosixPath(name).suffix in _BINARY_ENDINGS:
        return Skipped(path, "binary")
    if facts.st_size > most_bytes(name):
        return Skipped(path, "too_large")
    return FoundFile(path, Path(entry.path))


def _check_link(root: Path, link: Path) -> str:
    try:
        target = link.resolve(strict=True)
    except FileNotFoundError:
        return "broken_link"
    except (OSError, RuntimeError):
        return "link_cycle"
    if target in link.parents:
        return "link_cycle"
    return "link" if root in target.parents else "link_outside"


def _is_ignored(path: str, rules: tuple[_Rules, ...]) -> bool:
    verdicts = (rule_set.verdict(path) for rule_set in reversed(rules))
    return next((verdict for verdict in verdicts if verdict is not None), False)


def _is_output(entry: os.DirEntry[str]) -> bool:
    """Whether a folder holds what tools made: a virtual environment, a cache, build output."""
    folder = Path(entry.path)
    if (folder / "pyvenv.cfg").is_file() or (folder / "CACHEDIR.TAG").is_file():
        return True
    if entry.name not in _BUILT:
        return False
    return not any((folder / name).is_file() for name in _IS_PACKAGE)


def _explain(error: OSError) -> str:
    return "gone" if isinstance(error, FileNotFoundError) else "unreadable"


def _read_rules_above(root: Path) -> tuple[_Rules, ...]:
    """The rules that git would apply from outside `root`, weakest first.

    If they ignore `root` itself they are dropped: a folder that is indexed by name is wanted.
    """
    top = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), None)
    if top is None:
        return ()
    outside = [folder for folder in reversed(root.parents) if folder.is_relative_to(top)]
    git = top / ".git"
    if not git.is_dir():
        # The folder with git's own files: of a worktree it is elsewhere, and `.git` says where.
        with suppress(OSError, ValueError):
            written = git.read_text(encoding="utf-8", errors="replace")
            folder = top / written.partition("gitdir:")[2].strip()
            common = folder / "commondir"
            has_common = common.is_file()
            git = folder / common.read_text(encoding="utf-8").strip() if has_common else folder
    files = [(git / "info" / "exclude", top)]
    files += [(folder / ".gitignore", folder) for folder in outside]
    rule_sets = [
        _read_rules(file, "", "".join(part + "/" for part in root.relative_to(folder).parts))
        for file, folder in files
    ]
    rules = tuple(rule_set for rule_set in rule_sets if rule_set is not None)
    return () if outside and _is_ignored("", rules) else rules


def _read_rules(file: Path, base: str, above: str = "") -> _Rules | None:
    from pathspec import GitIgnoreSpec

    try:
        if file.is_symlink() or not file.is_file():
            return None
        with file.open("rb") as rules_file:
            rules_text = rules_file.read(_MOST_RULES).decode("utf-8-sig", "replace")
    except OSError:
        return None
    rules = []
    for line in rules_text.splitlines():
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            # git passes over a rule that makes no sense, too.
            continue
        rules.append(line)
    return _Rules(GitIgnoreSpec.from_lines(rules), base, above) if rules else None
