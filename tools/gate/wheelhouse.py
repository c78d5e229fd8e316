"""Fill `.wheelhouse/` with the files that requirements.lock pins, each checked by its hash.

`python -m tools.gate.wheelhouse` runs with the standard library and pip alone, because `make setup`
calls it before anything is installed. It downloads nothing while the lock is unchanged, and only
what is missing after a change. The environment of the developer is installed out of this folder
too, so that no file is fetched twice.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import re
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
LOCK: Final = ROOT / "requirements.lock"
WHEELHOUSE: Final = ROOT / ".wheelhouse"
_STAMP: Final = ".filled"
_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^ \\;]+)", re.MULTILINE)


class NotFilled(RuntimeError):
    """The folder does not hold what the lock pins."""


def main(words: Sequence[str] | None = None) -> int:
    """Fill the folder; with `--install` install the lock into this interpreter's environment."""
    parser = argparse.ArgumentParser(prog="python -m tools.gate.wheelhouse", description=__doc__)
    parser.add_argument("--folder", type=Path, default=WHEELHOUSE)
    parser.add_argument("--install", action="store_true")
    options = parser.parse_args(words)
    fill(options.folder)
    if options.install:
        install_lock(options.folder)
    return 0


def fill(folder: Path = WHEELHOUSE, lock: Path = LOCK, python: str = sys.executable) -> None:
    """Download what is missing, by hash; remove what is no longer pinned."""
    stamp = _stamp_of(lock, python)
    if is_filled(folder, stamp):
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _STAMP).unlink(missing_ok=True)
    ensure_pip(python)
    print(f"filling {folder.name}/ with the pinned packages, each checked by its hash", flush=True)
    _pip(
        python, "download", "--no-deps", "--require-hashes", "--requirement", str(lock),
        "--dest", str(folder), "--find-links", str(folder), "--find-links", str(WHEELHOUSE),
    )  # fmt: skip
    _remove_unpinned(folder, lock)
    for archive in sorted(folder.glob("*.tar.gz")):
        # An offline installation cannot fetch what builds an archive.
        _pip(python, "wheel", "--no-deps", "--wheel-dir", str(folder), str(archive))
    (folder / _STAMP).write_text(stamp)


def wheelhouse_of(source: Path, python: str = sys.executable) -> Path:
    """The folder with what a tree's lock pins for an interpreter.

    That of this tree and this interpreter must have been filled: `NotFilled`. Another one is filled
    here, under `.gate/`.
    """
    lock = source / "requirements.lock"
    stamp = _stamp_of(lock, python)
    if is_filled(WHEELHOUSE, stamp):
        return WHEELHOUSE
    if source == ROOT and stamp == _stamp_of(lock, sys.executable):
        raise NotFilled(f"{WHEELHOUSE} does not hold what {lock.name} pins; run: make setup")
    folder = ROOT / ".gate" / hashlib.sha256(stamp.encode()).hexdigest()[:12]
    fill(folder, lock, python)
    return folder


def is_filled(folder: Path, stamp: str) -> bool:
    """Whether the folder was filled for this lock and this kind of interpreter."""
    file = folder / _STAMP
    return file.is_file() and file.read_text() == stamp


def install_lock(folder: Path, python: str = sys.executable) -> None:
    """Install every pinned package out of the folder, checked by its hash once more."""
    # Packages that come as an archive alone are built, and that needs an index.
    offline = () if any(folder.glob("*.tar.gz")) else ("--no-index",)
    _pip(
        python, "install", *offline, "--no-deps", "--require-hashes", "--find-links", str(folder),
        "--requirement", str(LOCK),
    )  # fmt: skip


def ensure_pip(python: str = sys.executable) -> None:
    """uv makes environments without pip; the interpreter brings one along."""
    if python == sys.executable and importlib.util.find_spec("pip") is None:
        subprocess.run([python, "-m", "ensurepip"], check=True, stdout=subprocess.DEVNULL)


def _remove_unpinned(folder: Path, lock: Path) -> None:
    pinned = {(_plain(match[1]), match[2]) for match in _PIN.finditer(lock.read_text())}
    for file in folder.iterdir():
        name, _, rest = file.name.partition("-")
        if file.suffix == ".whl" and (_plain(name), rest.partition("-")[0]) not in pinned:
            file.unlink()
        elif file.name.endswith(".tar.gz"):
            name, _, version = file.name.removesuffix(".tar.gz").rpartition("-")
            if (_plain(name), version) not in pinned:
                file.unlink()


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _stamp_of(lock: Path, python: str) -> str:
    kind = f"{sys.version_info[:2]} {sysconfig.get_platform()}"
    if python != sys.executable:
        code = "import sys, sysconfig; print(sys.version_info[:2], sysconfig.get_platform())"
        kind = subprocess.run(
            [python, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
    return f"{hashlib.sha256(lock.read_bytes()).hexdigest()} {kind}"


def _pip(python: str, *words: str) -> None:
    own = ["--quiet", "--disable-pip-version-check", "--no-input"]
    subprocess.run([python, "-m", "pip", words[0], *own, *words[1:]], check=True, cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
