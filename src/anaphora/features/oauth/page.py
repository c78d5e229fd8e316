"""The page on which the owner allows or denies a client. No script; all text is escaped."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from typing import Final
from urllib.parse import urlsplit

from starlette.responses import HTMLResponse

from anaphora.features.oauth.consent import PendingRequest
from anaphora.text.display import one_line

_STYLE: Final = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem;"
    "color:#1c1c1c;background:#fff}code{overflow-wrap:anywhere}"
    "input[type=password]{font:inherit;padding:.4rem;width:100%;box-sizing:border-box}"
    "button{font:inherit;padding:.5rem 1.2rem;margin:1rem .5rem 0 0}"
    "[role=alert]{border-left:.3rem solid #b00020;padding-left:.7rem}"
    "@media(prefers-color-scheme:dark){body{color:#eee;background:#1c1c1c}}"
)
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_NAME: Final = 100


def consent_page(request: PendingRequest, namespace: str, problem: str = "") -> HTMLResponse:
    """Shows what the client wants, where it redirects to, and a field for the code."""
    access = request.asked
    may_write = "write" in access.scopes
    change = (
        '<p><label><input type="checkbox" name="write" value="yes" checked> '
        "It may also remember, change and forget</label></p>"
        if may_write
        else "<p>It asks to read only.</p>"
    )
    alert = f'<p role="alert">{_safe(problem)}</p>' if problem else ""
    body = (
        f"<h1>Connect {_safe(access.client_name)}?</h1>"
        f"<p>A program that calls itself <strong>{_safe(access.client_name)}</strong> asks to "
        f"recall from your memory (namespace <code>{_safe(namespace)}</code>). You are sent back "
        f"to</p><p><code>{_safe(access.redirect_uri, 500)}</code></p>"
        "<p>Go on only if you began this yourself, and know this address.</p>"
        f'{alert}<form method="post" action="/approve" autocomplete="off">'
        f'<input type="hidden" name="request" value="{escape(request.id, quote=True)}">{change}'
        '<p><label for="secret">The code that the terminal of your server shows, or a token of '
        '<code>anaphora token create</code></label></p><input type="password" id="secret" '
        'name="secret" autocomplete="one-time-code" autofocus>'
        '<button name="decision" value="allow">Allow</button>'
        '<button name="decision" value="deny">Deny</button></form>'
    )
    return _page(f"Connect {access.client_name}?", body, 200, access.redirect_uri)


def message_page(title: str, words: str, status: int) -> HTMLResponse:
    """A page with a single message."""
    return _page(title, f"<h1>{_safe(title)}</h1><p>{_safe(words, 1_000)}</p>", status)


def _safe(text: str, most: int = _NAME) -> str:
    """A client's text escaped and on one line, with invisible characters shown by their code."""
    return escape(one_line(text, most), quote=True)


def _page(title: str, body: str, status: int, redirect_uri: str = "") -> HTMLResponse:
    parts = urlsplit(redirect_uri)
    # The answer to the form redirects the browser: form-action must allow that address, too.
    onward = f"{parts.scheme}://{parts.netloc}" if parts.netloc else f"{parts.scheme}:"
    to = f"'self' {onward}" if redirect_uri else "'none'"
    policy = (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action {to}; "
        "frame-ancestors 'none'; base-uri 'none'"
    )
    return HTMLResponse(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{_safe(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><main>{body}</main></body></html>",
        status,
        {
            "Content-Security-Policy": policy,
            "X-Frame-Options": "DENY",
            "X-Content-Type-Options": "nosniff",
            # With no-referrer a browser would omit the Origin of the form, too.
            "Referrer-Policy": "same-origin",
            "Cache-Control": "no-store",
        },
    )
