"""OAuth 2.1 for the server over HTTP: the official client's whole flow, and whoever abuses it."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
import httpx2
import pytest
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl
from starlette.testclient import TestClient
from tests.commands import program
from tests.conftest import Clock
from tests.mcp_client import call

from anaphora import Memory
from anaphora.container.feature import only, registered
from anaphora.errors import InvalidInput
from anaphora.surfaces.mcp_server.address import public_address
from anaphora.surfaces.mcp_server.callers import CallerBuckets, peer_of
from anaphora.surfaces.mcp_server.http import gated
from anaphora.surfaces.mcp_server.sdk import build_server
from anaphora.surfaces.mcp_server.session import ServerSession
from anaphora.surfaces.mcp_server.tools import default_tools

BACK = "https://claude.example/callback"
PUBLIC = "https://memory.example.org"
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode()[:43]
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
TAKES = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class Storage:
    """Where the official client keeps what it got."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Owner:
    """A person with a browser, who reads the terminal of their server."""

    def __init__(self, terminal: Any) -> None:
        self.terminal = terminal
        self.pages: list[str] = []
        self.sent_to = ""

    async def open(self, url: str) -> None:
        async with httpx2.AsyncClient(timeout=60) as browser:
            page = await browser.get(url, follow_redirects=True)
            self.pages.append(page.text)
            code = re.search(r"type ([A-Z0-9-]{9}) on", self.terminal.readline())
            assert code is not None
            done = await browser.post(
                page.url.join("/approve"),
                data={
                    "request": page.url.params["request"],
                    "secret": code[1].lower(),
                    "write": "yes",
                    "decision": "allow",
                },
                headers={"Origin": f"{page.url.scheme}://{page.url.netloc.decode()}"},
            )
            assert done.status_code == 303, done.text
            self.sent_to = done.headers["location"]

    async def come_back(self) -> AuthorizationCodeResult:
        said = {name: one[0] for name, one in parse_qs(urlsplit(self.sent_to).query).items()}
        assert self.sent_to.startswith(BACK)
        return AuthorizationCodeResult(code=said["code"], state=said["state"], iss=said["iss"])


async def kept(session: ClientSession) -> None:
    await call(session, "store_memory", content="Herons wade at dawn.")


async def found(session: ClientSession) -> None:
    said = await call(session, "recall", question="when do herons wade?")
    assert "Herons wade" in str(said)


def held(storage: Storage) -> tuple[str, OAuthToken]:
    assert storage.client is not None
    assert storage.tokens is not None
    return storage.client.client_id, storage.tokens


async def revoked(url: str, storage: Storage) -> None:
    client_id, tokens = held(storage)
    async with httpx2.AsyncClient(base_url=url, timeout=60) as plain:
        given = {"token": tokens.access_token, "client_id": client_id}
        assert (await plain.post("/revoke", data=given)).status_code == 200
        headers = TAKES | {"Authorization": f"Bearer {tokens.access_token}"}
        refused = await plain.post("/mcp", json=PING, headers=headers)
    assert refused.status_code == 401
    assert "resource_metadata=" in refused.headers["www-authenticate"]


@pytest.mark.enable_socket
@pytest.mark.promise("oauth.flow")
def test_the_official_client_connects_refreshes_and_is_revoked(tmp_path: Path) -> None:
    """Discovery, registration, the owner's word, PKCE, a tool, a refresh, a revocation."""
    home = tmp_path / "home"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    words = ["--home", str(home), "mcp", "--http", f"127.0.0.1:{port}", "--oauth", url]
    environ = {**os.environ, "ANAPHORA_EMBEDDER": "hashing", "HOME": str(tmp_path)}
    storage = Storage()

    async def work(terminal: Any) -> None:
        owner = Owner(terminal)
        metadata = OAuthClientMetadata(client_name="Claude", redirect_uris=[AnyUrl(BACK)])

        async def using(what: Any, *, ended: bool = False) -> None:
            flow = OAuthClientProvider(f"{url}/mcp", metadata, storage, owner.open, owner.come_back)
            async with (
                httpx2.AsyncClient(auth=flow, timeout=60) as client,
                streamable_http_client(f"{url}/mcp", http_client=client) as streams,
                ClientSession(streams[0], streams[1]) as session,
            ):
                await session.initialize()
                if ended:
                    flow.context.token_expiry_time = 1.0
                await what(session)

        await using(kept)
        assert "Claude" in owner.pages[0]
        assert BACK in owner.pages[0]
        _, first = held(storage)
        assert first.scope == "read write"
        assert first.expires_in == 3600
        # It takes its access token for ended, and gets another one without asking the owner.
        await using(found, ended=True)
        assert held(storage)[1].access_token != first.access_token
        assert len(owner.pages) == 1
        await revoked(url, storage)

    with subprocess.Popen(
        [*program(), *words], stderr=subprocess.PIPE, text=True, env=environ
    ) as process:
        assert process.stderr is not None
        try:
            assert process.stderr.readline() == f"anaphora: {url}/mcp\n"
            anyio.run(work, process.stderr)
        finally:
            process.terminate()
            process.stderr.read()
    with Memory.open(home, embedder="hashing") as memory:
        (token,) = memory.tokens.list()
        assert token.name == "Claude (OAuth)"
        assert token.revoked_at is not None


class Server:
    """A server in process, and a client that has registered."""

    def __init__(self, http: TestClient, memory: Memory, read: Any) -> None:
        self.http, self.memory, self._read = http, memory, read

    def registered(self, *uris: str, name: str = "Claude") -> str:
        answer = self.http.post(
            "/register",
            json={
                "redirect_uris": uris or [BACK],
                "client_name": name,
                "token_endpoint_auth_method": "client_secret_post",
            },
        )
        assert answer.status_code == 201, answer.text
        said = answer.json()
        assert said["token_endpoint_auth_method"] == "none"
        assert "client_secret" not in said
        return str(said["client_id"])

    def asked(self, client_id: str, **changes: str | None) -> Any:
        """What comes of a request for authorization."""
        given: dict[str, str | None] = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": BACK,
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "state": "s",
            "resource": f"{PUBLIC}/mcp",
        }
        given |= changes
        query = urlencode({name: one for name, one in given.items() if one is not None})
        return self.http.get(f"/authorize?{query}", follow_redirects=False)

    def waiting(self, client_id: str, **changes: str | None) -> tuple[str, str]:
        """The id of a request that waits, and the code on the terminal."""
        to = self.asked(client_id, **changes).headers["location"]
        assert to.startswith(f"{PUBLIC}/approve?")
        code = re.search(r"type ([A-Z0-9-]{9}) on", self._read())
        assert code is not None
        return parse_qs(urlsplit(to).query)["request"][0], code[1]

    def answered(self, request: str, secret: str, origin: str | None = PUBLIC, **more: str) -> Any:
        headers = {} if origin is None else {"Origin": origin}
        given = {"request": request, "secret": secret, "decision": "allow", "write": "yes"}
        return self.http.post(
            "/approve", data=given | more, headers=headers, follow_redirects=False
        )

    def code(self, client_id: str, secret: str | None = None, **changes: str | None) -> str:
        request, shown = self.waiting(client_id, **changes)
        done = self.answered(request, secret or shown)
        assert done.status_code == 303, done.text
        said = parse_qs(urlsplit(done.headers["location"]).query)
        assert said["iss"] == [PUBLIC]
        assert said["state"] == ["s"]
        return str(said["code"][0])

    def token(self, client_id: str, code: str, **changes: str | None) -> Any:
        given: dict[str, str | None] = {
            "grant_type": "authorization_code",
            "client_id": client_id,
            "code": code,
            "redirect_uri": BACK,
            "code_verifier": VERIFIER,
        }
        given |= changes
        return self.http.post("/token", data={k: v for k, v in given.items() if v is not None})

    def refreshed(self, client_id: str, refresh: str, **more: str) -> Any:
        given = {"grant_type": "refresh_token", "client_id": client_id, "refresh_token": refresh}
        return self.http.post("/token", data=given | more)

    def granted(self, client_id: str, **changes: str | None) -> dict[str, Any]:
        answer = self.token(client_id, self.code(client_id, **changes))
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def status(self, secret: str, **headers: str) -> int:
        """What a call with this token is answered: 400 is past the gate."""
        sent = TAKES | {"Authorization": f"Bearer {secret}"} | headers
        return int(self.http.post("/mcp", json=PING, headers=sent).status_code)


# Past the gate, where the SDK misses a session.
LET_IN = 400


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(
    tmp_path: Path,
    clock: Clock,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> Iterator[Server]:
    sealed = getattr(request, "param", None)
    with ExitStack() as ending:
        memory = ending.enter_context(
            Memory.open(tmp_path / "home", embedder="hashing", clock=clock, encrypt=sealed)
        )
        session = ServerSession(lambda: memory, clock=clock)
        sdk = build_server(session, default_tools(), None, roots=False)
        own = "anaphora_" + "0" * 64
        gate = gated(sdk, session, "127.0.0.1", own, required=True, public=public_address(PUBLIC))
        http = ending.enter_context(TestClient(gate, base_url=PUBLIC))
        yield Server(http, memory, lambda: capsys.readouterr().err)


@pytest.mark.promise("oauth.discovery")
def test_a_client_finds_out_where_to_get_a_token(server: Server) -> None:
    """401 names the metadata of the resource, which names the server and what it can do."""
    refused = server.http.post("/mcp", json=PING, headers=TAKES)
    assert refused.status_code == 401
    found = re.search(r'resource_metadata="([^"]+)"', refused.headers["www-authenticate"])
    assert found is not None
    resource = server.http.get(urlsplit(found[1]).path).json()
    assert resource["resource"] == f"{PUBLIC}/mcp"
    assert resource["authorization_servers"] == [PUBLIC]
    metadata = server.http.get("/.well-known/oauth-authorization-server").json()
    assert metadata["issuer"] == PUBLIC
    assert metadata["code_challenge_methods_supported"] == ["S256"]
    assert metadata["token_endpoint_auth_methods_supported"] == ["none"]
    for name in ("authorization", "token", "registration", "revocation"):
        assert metadata[f"{name}_endpoint"].startswith(f"{PUBLIC}/")


@pytest.mark.promise("oauth.flow")
def test_what_is_granted_is_what_the_owner_said(server: Server) -> None:
    """Scopes become the rights of a token, which the list of tokens has, and revoking ends."""
    client = server.registered()
    both = server.granted(client)
    assert server.status(both["access_token"]) == LET_IN
    request, code = server.waiting(client)
    sent = server.answered(request, code, write="").headers["location"]
    less = server.token(client, parse_qs(urlsplit(sent).query)["code"][0]).json()
    assert less["scope"] == "read"
    reads = server.granted(client, scope="read")
    assert reads["scope"] == "read"
    tokens = server.memory.tokens.list()
    assert [token.read_only for token in tokens] == [False, True, True]
    assert all(token.namespaces == ("default",) for token in tokens)
    server.memory.tokens.revoke(tokens[0].id)
    assert server.status(both["access_token"]) == 401
    assert server.refreshed(client, both["refresh_token"]).status_code == 400
    assert server.status(reads["access_token"]) == LET_IN
    # Another client cannot revoke it.
    other = server.registered(name="Other")
    given = {"client_id": other, "token": reads["access_token"]}
    assert server.http.post("/revoke", data=given).status_code == 200
    assert server.http.post("/revoke", data=given | {"client_id": "x"}).status_code == 401
    assert server.status(reads["access_token"]) == LET_IN
    # A client may ask for less, and later for all that was granted.
    again = server.granted(client)
    narrow = server.refreshed(client, again["refresh_token"], scope="read").json()
    assert narrow["scope"] == "read"
    wide = server.refreshed(client, narrow["refresh_token"]).json()
    assert wide["scope"] == "read write"
    more = server.refreshed(client, reads["refresh_token"], scope="read write")
    assert more.json()["error"] == "invalid_scope"


@pytest.mark.promise("oauth.owner")
def test_a_token_of_the_server_approves_no_more_than_it_may(server: Server, clock: Clock) -> None:
    """One that reads grants reading; one of another namespace none; its end ends the grant."""
    tokens = server.memory.tokens
    ends = clock.now.replace(year=2027)
    reads = tokens.create("r", read_only=True, expires_at=ends)
    other = tokens.create("o", namespaces=["elsewhere"])
    client = server.registered()
    got = server.token(client, server.code(client, reads.secret)).json()
    assert got["scope"] == "read"
    made = next(one for one in tokens.list() if one.name == "Claude (OAuth)")
    assert made.read_only
    assert made.expires_at == ends
    assert server.status(got["access_token"]) == LET_IN
    tokens.revoke("r")
    assert server.status(got["access_token"]) == 401
    assert server.refreshed(client, got["refresh_token"]).status_code == 400
    request, _ = server.waiting(client)
    # Neither the user's own token of this machine, nor what a client was given.
    for secret in (other.secret, reads.secret, "anaphora_" + "0" * 64, got["access_token"]):
        assert server.answered(request, secret).status_code in {200, 403}
    assert len([one for one in tokens.list() if one.name == "Claude (OAuth)"]) == 1


@pytest.mark.promise("oauth.hostile")
def test_nobody_is_sent_where_no_client_registered(server: Server) -> None:
    """Another redirect address, or a script for one, is refused, and nobody is sent on."""
    client = server.registered()
    for uri in ("https://evil.example/", f"{BACK}/more", f"{BACK}?x=1", "https://claude.example"):
        answer = server.asked(client, redirect_uri=uri)
        assert answer.status_code == 400
        assert "location" not in answer.headers
    # Not even to a registered one before the owner has spoken.
    for changes in (
        {"response_type": "token"},
        {"scope": "admin"},
        {"code_challenge_method": "plain"},
        {"code_challenge": None},
        {"code_challenge": "short"},
        {"resource": "https://other.example/mcp"},
        {"resource": f"{PUBLIC}/other"},
    ):
        answer = server.asked(client, **changes)
        assert answer.status_code == 400, changes
        assert "location" not in answer.headers
    assert server.asked("unknown").status_code == 400
    assert server.asked(client, resource=f"{PUBLIC.upper()}/mcp/").status_code == 302
    for uri in (
        "javascript:alert(1)", "data:text/html,x", "http://evil.example/", "file:///etc/passwd",
        "https://u:p@claude.example/", f"{BACK}#fragment", "vbscript:x",
    ):  # fmt: skip
        refused = server.http.post("/register", json={"redirect_uris": [uri]})
        assert refused.status_code == 400, uri
    server.registered("http://127.0.0.1:33418/", "cursor://anysphere/callback", "com.example:/x")


@pytest.mark.promise("oauth.hostile")
def test_a_code_counts_once_for_its_client_and_its_proof(server: Server, clock: Clock) -> None:
    """Without its proof, for another client, late or twice it is refused; a replay ends all."""
    client, other = server.registered(), server.registered(name="Other")
    code = server.code(client)
    for changes in (
        {"code_verifier": "w" * 43},
        {"code_verifier": None},
        {"client_id": other},
        {"redirect_uri": "https://evil.example/"},
        {"redirect_uri": None},
        {"resource": "https://other.example/mcp"},
        {"code": code[:-1] + ("0" if code[-1] != "0" else "1")},
        {"code": "nonsense"},
    ):
        given = {"client_id": client, "code": server.code(client), **changes}
        assert server.token(**given).status_code in {400, 401}, changes  # type: ignore[arg-type]
    late = server.code(client)
    clock.advance(seconds=61)
    assert server.token(client, late).json()["error"] == "invalid_grant"
    code = server.code(client)
    got = server.token(client, code).json()
    assert server.status(got["access_token"]) == LET_IN
    assert server.token(client, code).json()["error"] == "invalid_grant"
    assert server.status(got["access_token"]) == 401
    assert server.refreshed(client, got["refresh_token"]).json()["error"] == "invalid_grant"


@pytest.mark.promise("oauth.hostile")
def test_tokens_end_and_a_refresh_token_that_comes_again_ends_its_grant(
    server: Server, clock: Clock
) -> None:
    """An access token lasts an hour; of two who refresh with the same one, neither stays in."""
    client, other = server.registered(), server.registered(name="Other")
    first = server.granted(client)
    clock.advance(minutes=61)
    assert server.status(first["access_token"]) == 401
    assert server.refreshed(other, first["refresh_token"]).status_code == 400
    second = server.refreshed(client, first["refresh_token"]).json()
    assert server.status(second["access_token"]) == LET_IN
    assert server.status(first["access_token"]) == 401
    assert server.refreshed(client, first["refresh_token"]).status_code == 400
    assert server.status(second["access_token"]) == 401
    assert server.refreshed(client, second["refresh_token"]).status_code == 400
    idle = server.granted(client)
    clock.advance(days=31)
    assert server.refreshed(client, idle["refresh_token"]).status_code == 400
    # An access token is none for refreshing, and the other way round.
    fresh = server.granted(client)
    assert server.status(fresh["refresh_token"]) == 401
    assert server.refreshed(client, fresh["access_token"]).status_code == 400
    assert server.status(fresh["access_token"]) == LET_IN


@pytest.mark.promise("oauth.hostile")
def test_only_the_owner_on_the_page_of_the_server_approves(server: Server) -> None:
    """Another site's form, one from nowhere, and guesses are refused; the client hears of a no."""
    client = server.registered(name='<script>alert("x")</script>\u202e')
    request, code = server.waiting(client)
    page = server.http.get("/approve", params={"request": request})
    assert "<script>" not in page.text
    assert "\u202e" not in page.text
    assert BACK in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' https://claude.example;" in policy
    for origin in ("https://evil.example", "null", None):
        assert server.answered(request, code, origin=origin).status_code == 403
    away = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
    assert server.http.get("/approve", params={"request": request}, headers=away).status_code == 403
    # A GET approves nothing, whatever it holds.
    server.http.get("/approve", params={"request": request, "secret": code, "decision": "allow"})
    assert server.memory.tokens.list() == ()
    for left in (4, 3, 2, 1):
        wrong = server.answered(request, "AAAA-AAAA")
        assert f"({left} left)" in wrong.text
    assert server.answered(request, "AAAA-AAAA").status_code == 403
    assert server.answered(request, code).status_code == 410
    request, code = server.waiting(client)
    denied = server.answered(request, "", decision="deny")
    said = parse_qs(urlsplit(denied.headers["location"]).query)
    assert said["error"] == ["access_denied"]
    assert said["state"] == ["s"]
    assert server.answered(request, code).status_code == 410
    assert server.memory.tokens.list() == ()


@pytest.mark.promise("oauth.hostile")
def test_names_sites_and_floods_are_refused(server: Server) -> None:
    """Another Host, another site's page, large bodies and floods get nowhere."""
    metadata = "/.well-known/oauth-authorization-server"
    for path in (metadata, "/authorize", "/approve"):
        assert server.http.get(path, headers={"Host": "evil.example"}).status_code == 421
    evil = {"Origin": "https://evil.example"}
    assert server.http.get(metadata, headers=evil).status_code == 403
    assert server.http.post("/token", data={}, headers=evil).status_code == 403
    assert server.http.post("/register", content=b"x" * 70_000).status_code == 413
    # The user's own token counts here, and not through the proxy.
    own = "anaphora_" + "0" * 64
    assert server.status(own) == 401
    assert server.status(own, Host="127.0.0.1:7412") == LET_IN
    assert server.status("anaphora_access_x") == 401
    found = [
        server.http.post("/register", json={"redirect_uris": [BACK]}).status_code for _ in range(32)
    ]
    assert found[0] == 201
    assert found[-1] == 429
    assert [server.asked("x").status_code for _ in range(31)][-1] == 429


@pytest.mark.promise("oauth.floods")
def test_who_floods_keeps_no_other_from_connecting(server: Server) -> None:
    """Neither a client that registered before, nor one at another address, nor what waits."""
    mine = server.registered()
    request, code = server.waiting(mine)
    theirs = [server.registered(name=f"flood {n}") for n in range(29)]
    assert server.http.post("/register", json={"redirect_uris": [BACK]}).status_code == 429
    for client in theirs:
        assert {server.asked(client).status_code for _ in range(8)} == {302}
    assert [server.asked("unknown").status_code for _ in range(31)][-1] == 429
    assert [server.asked(theirs[0]).status_code for _ in range(31)][-1] == 429
    # Of the client that was there before: what waits still counts, and it may ask again.
    assert server.asked(mine).status_code == 302
    assert server.answered(request, code).status_code == 303


@pytest.mark.promise("oauth.floods")
def test_callers_are_told_apart_by_their_addresses() -> None:
    """By the address that a proxy adds, not by those that a caller wrote before it."""

    def registered(told: str) -> int:
        scope = {"client": ("10.0.0.1", 1), "headers": [(b"x-forwarded-for", told.encode())]}
        return int(flood.take(peer_of(scope)))

    flood = CallerBuckets(0.5, 30, 10, lambda: 0.0)
    assert sum(registered(f"198.51.100.{n}, 203.0.113.7") for n in range(40)) == 30
    assert sum(registered(f"2001:db8::{n:x}") for n in range(40)) == 30
    assert registered("203.0.113.8") == 1
    # All together have ten times as much.
    assert sum(registered(f"198.51.{n % 256}.{n // 256}") for n in range(400)) == 300 - 61
    outside = {"client": ("8.8.8.8", 1), "headers": [(b"x-forwarded-for", b"198.51.100.1")]}
    assert peer_of(outside) == "8.8.8.8"


@pytest.mark.promise("oauth.hostile")
@pytest.mark.parametrize("server", [None, "file"], ids=["open", "sealed"], indirect=True)
def test_of_secrets_only_digests_are_kept(
    server: Server, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Neither code nor token stands in a file of the home, nor in a sealed one who connects."""
    client = server.registered()
    code = server.code(client)
    got = server.token(client, code).json()
    made = server.memory.tokens.create("agent")
    assert server.status(made.secret) == LET_IN
    server.memory.close()
    held = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for secret in (code, got["access_token"], got["refresh_token"]):
        assert secret.encode() not in held
        assert secret.rsplit("_", 1)[1].encode() not in held
    assert (BACK.encode() in held) is ("open" in request.node.name)


@pytest.mark.promise("oauth.discovery")
@pytest.mark.parametrize(
    "url",
    [
        "memory.example.org", "http://memory.example.org", "https://", "https://u@example.org",
        "https://example.org/memory", "https://example.org/?a", "https://example.org/#a",
        "https://[::1", "ftp://example.org",
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_public_is_refused(url: str) -> None:
    """It is https without anything behind the host, or http on this machine."""
    with pytest.raises(InvalidInput) as caught:
        public_address(url)
    assert caught.value.what == "oauth"


def test_without_the_feature_it_is_refused(tmp_path: Path) -> None:
    """A program without the feature issues no tokens, and its server says so before it listens."""
    others = [feature for feature in registered() if feature.name != "oauth"]
    with only(*others), Memory.open(tmp_path / "home", embedder="hashing") as memory:
        session = ServerSession(lambda: memory)
        sdk = build_server(session, default_tools(), None, roots=False)
        address = public_address(PUBLIC)
        with pytest.raises(InvalidInput, match=f"issues no tokens by OAuth.*{PUBLIC}"):
            gated(sdk, session, "127.0.0.1", None, required=True, public=address)


def test_where_it_was_not_asked_for_there_is_none(tmp_path: Path) -> None:
    """Without --oauth no endpoint answers, and a challenge names none."""
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        session = ServerSession(lambda: memory)
        sdk = build_server(session, default_tools(), None, roots=False)
        gate = gated(sdk, session, "127.0.0.1", None, required=True)
        with TestClient(gate, base_url="http://127.0.0.1:7412") as http:
            for path in ("/register", "/token", "/.well-known/oauth-authorization-server"):
                answer = http.get(path)
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"] == 'Bearer realm="anaphora"'
    for words in (["--oauth", PUBLIC], ["--http", "127.0.0.1:0", "--no-token", "--oauth", PUBLIC]):
        done = subprocess.run(
            [*program(), "--home", str(tmp_path / "home"), "mcp", *words],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert "oauth" in done.stderr
