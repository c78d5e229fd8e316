"""How a sealed home begins, where its key is kept, and how the key travels and changes."""

from __future__ import annotations

import importlib
import json
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from anaphora import Memory, keys
from anaphora.errors import InvalidInput, MissingKey, NoKeyringError, Tampered, WrongKey

pytest.importorskip("cryptography")
keyring = pytest.importorskip("keyring")
backends = pytest.importorskip("keyring.backend")


class MemoryKeyring(backends.KeyringBackend):  # type: ignore[name-defined,misc]
    """A keychain that lives as long as the test."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, name: str) -> str | None:
        return self.kept.get((service, name))

    def set_password(self, service: str, name: str, password: str) -> None:
        self.kept[service, name] = password

    def delete_password(self, service: str, name: str) -> None:
        del self.kept[service, name]


def use(backend: str) -> None:
    """From now on the machine has this keychain of `keyring`: "fail" is none, "null" forgets."""
    keyring.set_keyring(importlib.import_module(f"keyring.backends.{backend}").Keyring())


@pytest.fixture
def chain() -> Iterator[MemoryKeyring]:
    before = keyring.get_keyring()
    chain = MemoryKeyring()
    keyring.set_keyring(chain)
    yield chain
    keyring.set_keyring(before)


@pytest.fixture
def home(tmp_path: Path, chain: MemoryKeyring) -> Path:
    return tmp_path / "home"


def opened(home: Path, encrypt: Any = None) -> Memory:
    return Memory.open(home, encrypt=encrypt, embedder="hashing", warm=False)


def say(home: Path, text: str, encrypt: Any = None) -> None:
    with opened(home, encrypt) as memory:
        assert memory.conversations.append_user("c", text)


def said(home: Path) -> list[str]:
    with opened(home) as memory:
        return [turn.text for turn in memory.conversations.recent("c")]


def test_a_sealed_home_opens_again_with_the_key_of_the_keychain(
    home: Path, chain: MemoryKeyring
) -> None:
    """The master key is in the keychain alone, and whoever opens the home later finds it there."""
    say(home, "the launch code", True)
    assert said(home) == ["the launch code"]
    [(service, name)] = chain.kept
    key = chain.kept[service, name]
    marker = json.loads((home / "sealed.json").read_text())
    assert service == "anaphora"
    assert name == f"{marker['home']}.1"
    files = [path for path in home.rglob("*") if path.is_file()]
    assert files
    assert not any(key.encode() in path.read_bytes() for path in files)
    assert not any(bytes.fromhex(key) in path.read_bytes() for path in files)


def test_without_a_keychain_nothing_is_begun(home: Path) -> None:
    """A machine without a keychain gives NoKeyringError, and neither a file nor a key is made."""
    use("fail")
    with pytest.raises(NoKeyringError, match="encrypt='file'"):
        opened(home, True)
    assert not (home / "sealed.json").exists()
    assert not (home / "master.key").exists()
    say(home, "in clear")
    assert b"in clear" in (home / "conversations" / "c.json").read_bytes()


def test_a_keychain_that_forgets_is_none(home: Path) -> None:
    """A backend that takes a key and does not give it back is refused before anything is sealed."""
    use("null")
    with pytest.raises(NoKeyringError):
        opened(home, "keychain")
    assert not (home / "sealed.json").exists()


def test_a_lost_keychain_does_not_open_the_home(home: Path, chain: MemoryKeyring) -> None:
    """A sealed home without its key stays closed, whatever is asked for, and gets no new key."""
    say(home, "kept", True)
    before = (home / "sealed.json").read_bytes()
    wishes: tuple[Any, ...] = (None, True, "keychain", "file")
    for wish in wishes:
        keyring.set_keyring(MemoryKeyring())
        with pytest.raises(MissingKey):
            opened(home, wish)
        use("fail")
        with pytest.raises(NoKeyringError):
            opened(home, wish)
    keyring.set_keyring(chain)
    with pytest.raises(InvalidInput):
        opened(home, False)
    assert (home / "sealed.json").read_bytes() == before
    assert not (home / "master.key").exists()
    assert said(home) == ["kept"]


def test_another_key_is_told_from_the_right_one(home: Path, chain: MemoryKeyring) -> None:
    """A keychain that holds another key under the home's name gives WrongKey."""
    say(home, "kept", True)
    for name in chain.kept:
        chain.kept[name] = "11" * 32
    with pytest.raises(WrongKey):
        opened(home)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX modes")
def test_the_key_file_is_private_and_says_what_it_is(home: Path, chain: MemoryKeyring) -> None:
    """The file fallback is used only by explicit choice; the file has mode 0600 and a warning."""
    say(home, "kept", "file")
    path = home / "master.key"
    assert not chain.kept
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "in clear" in path.read_text()
    assert said(home) == ["kept"]
    path.unlink()
    with pytest.raises(MissingKey):
        opened(home)


def test_clear_contents_are_not_mixed_with_sealed_ones(home: Path) -> None:
    """A home with clear threads is not opened as a sealed one: it has to be converted."""
    say(home, "clear words")
    with pytest.raises(InvalidInput):
        say(home, "kept", "file")
    assert not (home / "sealed.json").exists()


def test_a_changed_marker_is_refused(home: Path) -> None:
    """Nobody without the key can tell the program that a home is being opened up."""
    say(home, "kept", "file")
    path = home / "sealed.json"
    marker = json.loads(path.read_text())
    for change in ({"state": "decrypting"}, {"conversion": 7}, {"kept": "nowhere"}, {"extra": 1}):
        path.write_text(json.dumps(marker | change))
        with pytest.raises(Tampered):
            opened(home)
    path.write_text("{")
    with pytest.raises(Tampered):
        opened(home)


Exported = Callable[[Path], tuple[str, str | None]]


@pytest.mark.parametrize(
    "exported",
    [
        lambda home: (keys.export_key(home, "correct horse"), "correct horse"),
        lambda home: (keys.export_key(home, raw=True), None),
    ],
    ids=["passphrase", "raw"],
)
@pytest.mark.parametrize("kept", [None, "file"])
def test_an_exported_key_opens_the_home_elsewhere(
    home: Path, exported: Exported, kept: Any
) -> None:
    """Export here, import on a machine whose keychain knows nothing: the home opens there."""
    say(home, "kept", True)
    text, passphrase = exported(home)
    keyring.set_keyring(MemoryKeyring())
    keys.import_key(home, text, passphrase, kept=kept)
    assert said(home) == ["kept"]
    assert (home / "master.key").exists() == (kept == "file")


def test_an_exported_key_is_asked_for_in_one_way(home: Path) -> None:
    """A key leaves in clear only when that was said, and never under a blank passphrase."""
    say(home, "kept", "file")
    wrong: list[dict[str, Any]] = [{}, {"passphrase": "x", "raw": True}, {"passphrase": " "}]
    for arguments in wrong:
        with pytest.raises(InvalidInput):
            keys.export_key(home, **arguments)


def test_wrong_imports_keep_nothing(home: Path, chain: MemoryKeyring) -> None:
    """A wrong passphrase, a changed text, another key: each is refused, and nothing is kept."""
    say(home, "kept", True)
    text = keys.export_key(home, "correct horse")
    chain.kept.clear()
    found = json.loads(text)
    changed = json.dumps(found | {"sealed": found["sealed"][:-8] + "AAAAAAA="})
    huge = json.dumps(found | {"kdf": found["kdf"] | {"n": 2**40}})
    for given, passphrase, error in (
        (text, "wrong", WrongKey),
        (changed, "correct horse", WrongKey),
        (text, None, InvalidInput),
        (huge, "correct horse", InvalidInput),
        ("no key", "correct horse", InvalidInput),
        ("ab" * 32, None, WrongKey),
    ):
        with pytest.raises(error):
            keys.import_key(home, given, passphrase)
    assert not chain.kept
    keys.import_key(home, text, "correct horse")
    assert said(home) == ["kept"]


def test_a_new_master_key_costs_one_small_file(home: Path, chain: MemoryKeyring) -> None:
    """Rotation changes sealed.json alone; an open process goes on; the old key opens nothing."""
    before = opened(home, True)
    before.conversations.append_user("c", "before")
    old = keys.export_key(home, raw=True)
    threads = {path: path.read_bytes() for path in home.rglob("*.sealed")}
    assert threads
    keys.rotate_key(home)
    assert {path: path.read_bytes() for path in home.rglob("*.sealed")} == threads
    before.conversations.append_user("c", "after")
    before.close()
    assert said(home) == ["before", "after"]
    assert [name.rsplit(".", 1)[1] for _, name in chain.kept] == ["2"]
    with pytest.raises(WrongKey):
        keys.import_key(home, old)
    keys.rotate_key(home, kept="file")
    assert not chain.kept
    assert said(home) == ["before", "after"]
