"""Secrets that are stored or handed on: in memories, tags, ids, prompts, answers and logs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tools.attacks import attack

_HEX: Final = "0123456789abcdef"
_MIXED: Final = "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3" * 8

_SECRETS: Final = (
    *("anaphora_" + _HEX * 4, "anaphora_access_" + _HEX + "_" + _HEX * 4),
    *("anaphora-sync-1:" + _MIXED[:200], "gsk_" + _MIXED[:52], "xai-" + _MIXED[:80]),
    *("sk-" + _HEX * 2, "pplx-" + _MIXED[:48], "r8_" + _MIXED[:37], "tvly-dev-" + _MIXED[:32]),
    *("lsv2_pt_" + _HEX * 2 + "_" + _HEX[:10], "ntn_" + _MIXED[:46], "lin_api_" + _MIXED[:40]),
    *("figd_" + _MIXED[:40], "dapi" + _HEX * 2, "glsa_" + _MIXED[:32] + "_" + _HEX[:8]),
    *("dp.pt." + _MIXED[:43], "pscale_tkn_" + _MIXED[:43], "sbp_" + (_HEX * 3)[:40]),
    *("dckr_pat_" + _MIXED[:27], _MIXED[:14] + ".atlasv1." + _MIXED[:67], "fo1_" + _MIXED[:43]),
    *("pat" + _MIXED[:14] + "." + _HEX * 4, "ATATT3xFfGF0" + _MIXED[:180], "ATBB" + _MIXED[:32]),
    *("sl." + _MIXED[:140], "NRAK-" + "ABCDEFGHIJ0123456789ABCDEFG", "sntryu_" + _HEX * 4),
    *("PMAK-" + (_HEX * 2)[:24] + "-" + (_HEX * 3)[:34], "rubygems_" + _HEX * 3),
    *("cio" + _MIXED[:32], "oy2" + _MIXED[:43].lower()),
    *("tskey-auth-k" + _MIXED[:11] + "-" + _MIXED[:32],),
    *("AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE",),
    *("abc8Q~" + _MIXED[:34], "1//0g" + _MIXED[:98], "IQoJb3JpZ2luX2VjE" + _MIXED[:300]),
)  # fmt: skip
_SAID: Final = {
    "curl -u ann:s3same77 https://example.org": "s3same77",
    "sshpass -p tr0ub4dor ssh a@b": "tr0ub4dor",
    "mysql -uroot -ps3cr3tpw shop": "s3cr3tpw",
    "machine example.org login ann password n3trcpw9": "n3trcpw9",
    "Das Passwort ist hunter2": "hunter2",
    "use gh\u200bp_" + _MIXED[:36]: _MIXED[:36],
    'AWS_SESSION_TOKEN="' + "Aa1" * 200 + '"': "Aa1Aa1Aa1",
    "AWS_SESSION_TOKEN=" + "Aa1" * 400: "Aa1Aa1Aa1",
}


def _open(folder: Path) -> Any:
    from anaphora import Memory

    return Memory.open(folder / "home", embedder="hashing")


@attack("F23", "medium", "no secret of a known form is stored with a memory")
def forms(folder: Path) -> None:
    """Remember each of them in a sentence, and passwords in commands and words."""
    with _open(folder) as memory:
        for secret in _SECRETS:
            record = memory.get(memory.remember(f"Use {secret} to sign in.").id)
            assert secret not in record.text, secret[:12]
        for text, secret in _SAID.items():
            record = memory.get(memory.remember(text).id)
            assert secret not in record.text, text[:20]


@attack("F23", "low", "an article's number, code and numbers of code are no secrets")
def false_alarms(folder: Path) -> None:
    """Remember code and numbers that only look so: every word stays."""
    ordinary = (
        "SKU SK0123456789abcdef0123456789abcdef",
        "const token = req.headers.authorization?.split(' ')[1];",
        '<a publicKeyToken="b77a5c561934e089"/>',
        '{"lifetime": 2592000000000000}',
        'if (token == "interface") {}',
    )
    with _open(folder) as memory:
        for text in ordinary:
            assert memory.get(memory.remember(text).id).text == text, text


@attack("F24", "low", "tags of a document and the conversation's id of a memory keep no secret")
def tags_and_ids(folder: Path) -> None:
    """Put a token where only names are expected, and look into every file."""
    secret = "ghp_" + _MIXED[:36]
    with _open(folder) as memory:
        memory.add_document(b"# A page\n\nWith words.", name="a.md", tags=(f"key {secret}",))
        memory.remember("a fact", conversation_id=f"chat.{secret}")
        memory.ready()
    for path in (folder / "home").rglob("*"):
        assert not (path.is_file() and secret.encode() in path.read_bytes()), path.name


@attack("F24", "medium", "a secret in a turn is masked in recalled blocks, and kept as it was said")
def masked_blocks(folder: Path) -> None:
    """Say a token in a chat, recall it for a prompt, and ask the doctor."""
    from anaphora import render_recall

    secret = "ghp_" + _MIXED[:36]
    with _open(folder) as memory:
        memory.conversations.append_user("chat", f"The token for the deploy is {secret}, ok?")
        hits = memory.recall_conversation(None, "what is the token for the deploy?").hits
        assert secret in memory.conversations.get("chat").turns[0].text
        block = render_recall(hits)
        assert "deploy" in block
        assert secret not in block
        checks = {check.name: check.detail for check in memory.doctor()}
    said = checks.get("secrets", "")
    assert said.startswith("1 turn")
    assert "conversation redact chat 0" in said
    assert secret not in said


@attack("F31", "medium", "a server writes its token to no file and no log")
def token_in_log(folder: Path) -> None:
    """Start a server as a service does, and read what it wrote."""
    words = [
        sys.executable,
        "-m",
        "anaphora",
        "--home",
        str(folder / "home"),
        "serve",
        "--port",
        "0",
    ]
    environ = os.environ | {"ANAPHORA_EMBEDDER": "hashing", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ
    ) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        process.terminate()
        rest, errors = process.communicate(timeout=60)
    assert "http://" in said, errors
    assert re.search(r"anaphora_[0-9a-f]{64}", said + rest + errors) is None


@attack("F31", "low", "a name that begins like an address of this machine is not this machine")
def forged_host(folder: Path) -> None:
    """Names that a lax reader of the header takes for loopback."""
    from anaphora.surfaces.rest.auth import host_of

    for host in ("[::1].evil.com", "[::1]evil.com:80", "[::1]:80.evil.com", "localhost:80:evil"):
        assert host_of(host) not in {"[::1]", "localhost", "127.0.0.1"}, host


@attack("F31", "medium", "a token of one namespace learns no remote and removes no device")
def one_namespace(folder: Path) -> None:
    """Ask how it is synced, and remove a device, with tokens of one namespace."""
    from fastapi.testclient import TestClient

    from anaphora.surfaces.rest import create_app

    with _open(folder) as memory:
        (folder / "remote").mkdir()
        memory.sync.init(str(folder / "remote"))
        reader = memory.tokens.create("r", namespaces=("default",), read_only=True).secret
        writer = memory.tokens.create("w", namespaces=("default",)).secret
        client = TestClient(create_app(memory), base_url="http://localhost")
        with client:
            told = client.get("/v1/sync", headers={"Authorization": f"Bearer {reader}"})
            assert told.status_code == 200, told.text
            assert str(folder) not in told.text
            device = told.json()["status"]["device"]
            done = client.post(
                "/v1/sync/remove",
                json={"device": device},
                headers={"Authorization": f"Bearer {writer}"},
            )
            assert done.status_code == 403, done.text
