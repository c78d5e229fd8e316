"""`anaphora encrypt`, `decrypt` and `key` as programs and people use them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.commands import is_one_mistake, run_command

pytest.importorskip("cryptography")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cli(tmp_path: Path) -> Run:
    """Runs `anaphora` as a process, in a home of its own, where there is no keychain."""

    def run(*words: str | Path, home: str = "home", given: str = "") -> Run:
        environ = {
            "ANAPHORA_EMBEDDER": "hashing",
            "ANAPHORA_READER": "off",
            "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
            "PATH": "",
            "HOME": str(tmp_path),
        }
        words = ("--home", tmp_path / home, *words)
        return run_command(*words, environ=environ, text=given)  # type: ignore[return-value]

    return run  # type: ignore[return-value]


@pytest.mark.promise("sealed.left")
def test_what_is_not_ours_is_named(cli: Run, tmp_path: Path) -> None:
    """Files beside ours that stay in clear are named when the home is sealed, and by doctor."""
    cli("remember", "Ada drinks cardamom", "--json")
    cli("remember", "Ada drinks tea", "--json", "--namespace", "work")
    home = tmp_path / "home"
    for name in (
        "stray.txt", "anaphora.db.bak", "conversations/talk.json.bak", "namespaces/work/sub/note",
        "namespaces/list", "notes/of/mine", "conversations/.corrupt/talk.json.1.bak",
    ):  # fmt: skip
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("Ada drinks cardamom")
    left = sorted(
        str(home / name)
        for name in (
            "stray.txt", "anaphora.db.bak", "conversations/talk.json.bak", "namespaces/work/sub",
            "namespaces/list", "notes", "conversations/.corrupt/talk.json.1.bak",
        )
    )  # fmt: skip
    assert json.loads(cli("encrypt", "--kept", "file", "--json").stdout)["left_in_clear"] == left
    checks = json.loads(cli("doctor", "--json").stdout)["checks"]
    told = [c["detail"] for c in checks if c["name"] == "sealing" and not c["ok"]]
    assert [detail.split(" is not one of our files")[0] for detail in told] == left
    assert "left_in_clear" in cli("decrypt", "--json").stdout
    shown = cli("encrypt", "--kept", "file").stdout
    assert all(Path(place).name in shown for place in left)


def test_a_home_is_encrypted_used_and_decrypted(cli: Run, tmp_path: Path) -> None:
    """Memories are recalled before, in between and after; doctor says how the home is kept."""
    cli("remember", "Ada drinks cardamom", "--json")
    assert b"cardamom" in (tmp_path / "home" / "anaphora.db").read_bytes()
    done = json.loads(cli("encrypt", "--kept", "file", "--json").stdout)
    assert (done["rows"] > 1, done["problems"]) == (True, [])
    assert b"cardamom" not in (tmp_path / "home" / "anaphora.db").read_bytes()
    assert "Ada drinks cardamom" in cli("recall", "cardamom").stdout
    checks = json.loads(cli("doctor", "--json").stdout)["checks"]
    (sealing,) = [check for check in checks if check["name"] == "sealing"]
    assert sealing["ok"]
    assert sealing["detail"].startswith("encrypted; key ")
    assert cli("key", "rotate", "--deep").stdout == "rotated\n"
    assert "decrypted: " in cli("decrypt").stdout
    assert "Ada drinks cardamom" in cli("recall", "cardamom").stdout
    checks = json.loads(cli("doctor", "--json").stdout)["checks"]
    (sealing,) = [check for check in checks if check["name"] == "sealing"]
    assert sealing["ok"]
    assert sealing["detail"].startswith("not encrypted; keychain: there is none")


def test_a_key_is_exported_and_imported(cli: Run, tmp_path: Path) -> None:
    """A backup restored elsewhere opens after `key import`, with the passphrase from a file."""
    phrase, wrong, key = (tmp_path / name for name in ("phrase", "wrong", "key"))
    phrase.write_text("correct horse\n")
    wrong.write_text("wrong horse\n")
    cli("remember", "Ada drinks cardamom")
    cli("encrypt", "--kept", "file")
    exported = cli("key", "export", "--passphrase-file", phrase)
    key.write_text(exported.stdout)
    assert json.loads(exported.stdout)["anaphora"] == "master key"
    assert cli("backup", tmp_path / "all.zip").returncode == 0
    assert cli("restore", tmp_path / "all.zip", home="there").returncode == 0
    lost = cli("recall", "cardamom", home="there")
    assert (lost.returncode, lost.stdout) == (1, "")
    assert "import the exported one" in lost.stderr
    bad = cli("key", "import", key, "--passphrase-file", wrong, home="there")
    assert (bad.returncode, "passphrase is wrong" in bad.stderr) == (1, True)
    cli("key", "import", key, "--passphrase-file", phrase, home="there")
    assert "Ada drinks cardamom" in cli("recall", "cardamom", home="there").stdout
    raw = cli("key", "export", "--raw").stdout
    assert len(raw) == 65
    (tmp_path / "there" / "master.key").unlink()
    assert cli("key", "import", "-", home="there", given=raw).returncode == 0
    assert "Ada drinks cardamom" in cli("recall", "cardamom", home="there").stdout


def test_what_cannot_be_done_is_one_line(cli: Run, tmp_path: Path) -> None:
    """No keychain, no key, nobody to ask for a passphrase: an exit code and one line, no change."""
    cli("remember", "Ada drinks cardamom")
    for words, code, said in (
        (("encrypt",), 1, "keychain"),
        (("encrypt", "--kept", "cellar"), 2, "expected 'keychain' or 'file'"),
        (("decrypt",), 2, "not encrypted"),
        (("key", "export", "--raw"), 2, "not encrypted"),
        (("key", "export"), 2, "passphrase-file"),
        (("key", "import", tmp_path / "none"), 4, "cannot read"),
        (("key", "rotate"), 2, "not encrypted"),
    ):
        done = cli(*words)
        assert (done.returncode, done.stdout) == (code, "")
        assert said in done.stderr
        assert is_one_mistake(done.stderr)
    assert not (tmp_path / "home" / "sealed.json").exists()
    assert "Ada drinks cardamom" in cli("recall", "cardamom").stdout
