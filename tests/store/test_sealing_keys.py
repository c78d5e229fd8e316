"""How a sealed home begins, where its key is kept, and how the key travels and changes."""

from __future__ import annotations

import importlib
import json
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anaphora.errors import InvalidInput, MissingKey, NoKeyringError, Tampered, WrongKey
from anaphora.store.crypto.cipher import derive
from anaphora.store.crypto.key_stores import Keychain
from anaphora.store.home import master_key
from anaphora.store.home.opening import open_home
from anaphora.store.home.sealing import Home, Sealing
from anaphora.store.threads.file_store import ConversationStore

pytestmark = pytest.mark.internal

pytest.importorskip("cryptography")
keyring = pytest.importorskip("keyring")


class MemoryKeyring:
    """A keychain that lives as long as the test."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, name: str) -> str | None:
        return self.kept.get((service, name))

    def set_password(self, service: str, name: str, password: str) -> None:
        self.kept[service, name] = password

    def delete_password(self, service: str, name: str) -> None:
        del self.kept[service, name]


def nowhere() -> Keychain:
    """What `keyring` gives on a machine without any keychain."""
    backend: Any = importlib.import_module("keyring.backends.fail")
    return Keychain(backend.Keyring())


def forgetful() -> Keychain:
    """What `keyring` gives to who switched it off."""
    backend: Any = importlib.import_module("keyring.backends.null")
    return Keychain(backend.Keyring())


@pytest.fixture
def chain() -> MemoryKeyring:
    return MemoryKeyring()


@pytest.fixture
def home(tmp_path: Path, chain: MemoryKeyring) -> Home:
    root = tmp_path / "home"
    return Home(root, root / "conversations", keychain=Keychain(chain))


def say(home: Home, sealing: Sealing, text: str) -> None:
    form = sealing.threads("default")
    assert ConversationStore(home.conversations, strict=True, form=form).append_user("c", text)


def said(home: Home, sealing: Sealing) -> list[str]:
    form = sealing.threads("default")
    return [
        t.text for t in ConversationStore(home.conversations, strict=True, form=form).recent("c")
    ]


def test_a_sealed_home_opens_again_with_the_key_of_the_keychain(
    home: Home, chain: MemoryKeyring
) -> None:
    """The master key is in the keychain alone, and whoever opens the home later finds it there."""
    say(home, open_home(home, True), "the launch code")
    assert said(home, open_home(home)) == ["the launch code"]
    [(service, name)] = chain.kept
    key = chain.kept[service, name]
    marker = json.loads((home.root / "sealed.json").read_text())
    assert service == "anaphora"
    assert name == f"{marker['home']}.1"
    files = [path for path in home.root.rglob("*") if path.is_file()]
    assert files
    assert not any(key.encode() in path.read_bytes() for path in files)
    assert not any(bytes.fromhex(key) in path.read_bytes() for path in files)


def test_without_a_keychain_nothing_is_begun(tmp_path: Path) -> None:
    """A machine without a keychain gives NoKeyringError, and neither a file nor a key is made."""
    root = tmp_path / "home"
    home = Home(root, root / "conversations", keychain=nowhere())
    with pytest.raises(NoKeyringError, match="encrypt='file'"):
        open_home(home, True)
    assert not (root / "sealed.json").exists()
    assert not (root / "master.key").exists()
    assert not open_home(home).sealed


def test_a_keychain_that_forgets_is_none(tmp_path: Path) -> None:
    """A backend that takes a key and does not give it back is refused before anything is sealed."""
    root = tmp_path / "home"
    home = Home(root, root / "conversations", keychain=forgetful())
    with pytest.raises(NoKeyringError):
        open_home(home, "keychain")
    assert not (root / "sealed.json").exists()


def test_a_lost_keychain_does_not_open_the_home(home: Home, chain: MemoryKeyring) -> None:
    """A sealed home without its key stays closed, whatever is asked for, and gets no new key."""
    say(home, open_home(home, True), "kept")
    before = (home.root / "sealed.json").read_bytes()
    lost = replace(home, keychain=Keychain(MemoryKeyring()))
    none = replace(home, keychain=nowhere())
    wishes: tuple[Any, ...] = (None, True, "keychain", "file")
    for wish in wishes:
        with pytest.raises(MissingKey):
            open_home(lost, wish)
        with pytest.raises(NoKeyringError):
            open_home(none, wish)
    with pytest.raises(InvalidInput):
        open_home(home, False)
    assert (home.root / "sealed.json").read_bytes() == before
    assert not (home.root / "master.key").exists()
    assert said(home, open_home(home)) == ["kept"]


def test_another_key_is_told_from_the_right_one(home: Home, chain: MemoryKeyring) -> None:
    """A keychain that holds another key under the home's name gives WrongKey."""
    say(home, open_home(home, True), "kept")
    for name in chain.kept:
        chain.kept[name] = "11" * 32
    with pytest.raises(WrongKey):
        open_home(home)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX modes")
def test_the_key_file_is_private_and_says_what_it_is(home: Home, chain: MemoryKeyring) -> None:
    """The file fallback is used only by explicit choice; the file has mode 0600 and a warning."""
    say(home, open_home(home, "file"), "kept")
    path = home.root / "master.key"
    assert not chain.kept
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "in clear" in path.read_text()
    assert said(home, open_home(home)) == ["kept"]
    path.unlink()
    with pytest.raises(MissingKey):
        open_home(home)


def test_clear_contents_are_not_mixed_with_sealed_ones(home: Home) -> None:
    """A home with clear threads is not opened as a sealed one: it has to be converted."""
    say(home, open_home(home), "clear words")
    with pytest.raises(InvalidInput):
        open_home(home, "file")
    assert not (home.root / "sealed.json").exists()


def test_sealed_threads_without_a_marker_are_not_taken_for_clear(home: Home) -> None:
    """A home that lost sealed.json is refused, and no second key is made for it."""
    say(home, open_home(home, "file"), "kept")
    (home.root / "sealed.json").unlink()
    wishes: tuple[Any, ...] = (None, True, "file")
    for wish in wishes:
        with pytest.raises(MissingKey):
            open_home(home, wish)


def test_a_changed_marker_is_refused(home: Home) -> None:
    """Nobody without the key can tell the program that a home is being opened up."""
    open_home(home, "file")
    path = home.root / "sealed.json"
    marker = json.loads(path.read_text())
    for change in ({"state": "decrypting"}, {"conversion": 7}, {"kept": "nowhere"}, {"extra": 1}):
        path.write_text(json.dumps(marker | change))
        with pytest.raises(Tampered):
            open_home(home)
    path.write_text("{")
    with pytest.raises(Tampered):
        open_home(home)


Exported = Callable[[Home], tuple[str, str | None]]


@pytest.mark.parametrize(
    "exported",
    [
        lambda home: (master_key.export_master_key(home, "correct horse"), "correct horse"),
        lambda home: (master_key.export_master_key(home, raw=True), None),
    ],
    ids=["passphrase", "raw"],
)
@pytest.mark.parametrize("kept", [None, "file"])
def test_an_exported_key_opens_the_home_elsewhere(
    home: Home, exported: Exported, kept: Any
) -> None:
    """Export here, import on a machine whose keychain knows nothing: the home opens there."""
    say(home, open_home(home, True), "kept")
    text, passphrase = exported(home)
    elsewhere = replace(home, keychain=Keychain(MemoryKeyring()))
    master_key.import_master_key(elsewhere, text, passphrase, kept=kept)
    assert said(elsewhere, open_home(elsewhere)) == ["kept"]
    assert (home.root / "master.key").exists() == (kept == "file")


def test_an_exported_key_is_asked_for_in_one_way(home: Home) -> None:
    """A key leaves in clear only when that was said, and never under a blank passphrase."""
    open_home(home, "file")
    wrong: list[dict[str, Any]] = [{}, {"passphrase": "x", "raw": True}, {"passphrase": " "}]
    for arguments in wrong:
        with pytest.raises(InvalidInput):
            master_key.export_master_key(home, **arguments)


def test_wrong_imports_keep_nothing(home: Home, chain: MemoryKeyring) -> None:
    """A wrong passphrase, a changed text, another key: each is refused, and nothing is kept."""
    open_home(home, True)
    text = master_key.export_master_key(home, "correct horse")
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
            master_key.import_master_key(home, given, passphrase)
    assert not chain.kept
    master_key.import_master_key(home, text, "correct horse")
    assert open_home(home).sealed


def test_a_new_master_key_costs_one_small_file(home: Home, chain: MemoryKeyring) -> None:
    """Rotation changes sealed.json alone; an open process goes on; the old key opens nothing."""
    sealing = open_home(home, True)
    say(home, sealing, "before")
    old = master_key.export_master_key(home, raw=True)
    threads = {path: path.read_bytes() for path in home.conversations.rglob("*.sealed")}
    master_key.rotate_master_key(home)
    assert {path: path.read_bytes() for path in home.conversations.rglob("*.sealed")} == threads
    say(home, sealing, "after")
    assert said(home, open_home(home)) == ["before", "after"]
    assert [name.rsplit(".", 1)[1] for _, name in chain.kept] == ["2"]
    with pytest.raises(WrongKey):
        master_key.import_master_key(home, old)
    master_key.rotate_master_key(home, kept="file")
    assert not chain.kept
    assert said(home, open_home(home)) == ["before", "after"]


def test_derivation_is_hkdf_as_published() -> None:
    """Derived keys are HKDF-SHA256 (RFC 5869) of the key with the label as info."""
    import hashlib
    import hmac

    key = bytes(range(32))
    extracted = hmac.digest(b"\0" * 32, key, "sha256")
    block = hmac.digest(extracted, b"anaphora/records/v1\x01", "sha256")
    assert derive(key, "records") == block
    assert hashlib.sha256().digest_size == len(block)
