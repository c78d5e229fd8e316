"""Passwords that are said in a sentence, and those that a command is given.

"Das Passwort für den Router ist hunter2", `curl -u ann:hunter2 …`: no sign of assignment stands
between the word and the value. Every pattern is bounded, so a text of any length takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from anaphora.ingest.secrets.patterns import first_of, picked

__all__ = ["command_secrets", "said_passwords"]

_WORDS: Final = (
    # English, German, French, Spanish, Portuguese, Italian, Dutch
    r"pass(?:word|phrase|code|wd)|pwd|passwort|kennwort|mot[ _-]de[ _-]passe|contrase(?:ñ|n)a|clave"
    r"|senha|palavra-passe|parola[ _-]d'ordine|wachtwoord"
    # Polish, Czech, Hungarian, Romanian, Turkish, the Nordic languages
    r"|hasło|heslo|jelszó|parola|şifre|lösenord|adgangskode|passord|salasana"
    # Russian, Ukrainian, Greek, Arabic, Hebrew, Hindi
    r"|пароль|κωδικός|كلمة المرور|סיסמה|סיסמא|पासवर्ड"
    # Japanese, Chinese, Korean
    r"|パスワード|暗証|密码|密碼|口令|비밀번호|암호"
)
_IS: Final = (
    r"is|was|ist|war|lautet|hei(?:ß|ss)t|est|était|es|era|é|è|foi|jest|to|je|är|er|on|var|este|a"
    r"|c['’]est|είναι|это|есть|هي|היא|הוא|है"
)
_SAID: Final = re.compile(
    rf"(?:{_WORDS})(?:[^\S\n]{{1,2}}[^\W_][\w.'’@/-]{{0,24}}){{0,5}}?"
    rf"(?:[^\S\n]{{1,2}}(?:{_IS})[:：]?|[^\S\n]{{0,2}}[:：])"
    rf"[^\S\n]{{0,2}}(?:now |jetzt |maintenant |ahora )?"
    r"[\"'`„“«»‘]?(?P<value>[!-~]{6,200})",
    re.IGNORECASE,
)
# These languages write no space between words.
_SAID_CLOSE: Final = re.compile(
    r"(?:パスワード|暗証番号|密码|密碼|口令|비밀번호|암호)[^\n!-~]{0,12}?(?:は|が|是|为|為|는|은|：|:|「)"
    r"[^\S\n]{0,2}[\"'`「『“]?(?P<value>[!-~]{6,200})"
)
SAID_PARTS: Final = (
    *(
        "passw",
        "passphrase",
        "passcode",
        "pwd",
        "kennwort",
        "mot de",
        "mot_de",
        "mot-de",
        "contrase",
    ),
    *("clave", "senha", "palavra", "parola", "wachtwoord", "hasło", "heslo", "jelszó", "şifre"),
    *(
        "lösenord",
        "adgangskode",
        "passord",
        "salasana",
        "пароль",
        "κωδικός",
        "كلمة",
        "סיסמ",
        "पासवर्ड",
    ),
    *("パスワード", "暗証", "密码", "密碼", "口令", "비밀번호", "암호"),
)
"""No sentence says a password without one of these, in lower case."""
_ALGORITHM: Final = re.compile(
    r"(?:sha|md|base|utf|aes|rsa|bcrypt|scrypt|pbkdf|argon|hmac|blake|ed|secp|oauth|saml|x|http"
    r"|tls|ipv|python|java|es|rfc)[-_]?\d+\w{0,4}(?:[-_/.]\w+)*",
    re.IGNORECASE,
)
# What goes on with another name and its value is an object or a call in code without spaces.
_SEVERAL: Final = re.compile(r"[,;{][A-Za-z_$][\w$]{0,40}[:=,(][^\s]*[,;{}(=:]")
_CLOSING: Final = "\"'`”“»«’」』.,;:!?)]}>*_"


def said_passwords(
    text: str, lowered: str, is_password: Callable[[str], bool]
) -> Iterator[tuple[int, int, str]]:
    """Give (start, end, kind) of every password that a sentence says, if `is_password` of it."""
    if len(lowered) != len(text):
        lowered = "".join(
            character if len(character.lower()) != 1 else character.lower() for character in text
        )
    lines = picked(text, first_of(lowered, SAID_PARTS))
    for pattern in (_SAID, _SAID_CLOSE):
        for match in pattern.finditer(lines.text):
            written_password = match.group("value").rstrip(_CLOSING)
            if (
                _ALGORITHM.fullmatch(written_password)
                or _SEVERAL.search(written_password)
                or written_password[:1] == "<"
            ):
                continue
            if is_password(written_password):
                start = lines.place(match.start("value"))
                yield start, start + len(written_password), "password"


_VALUE: Final = (
    r"(?:\"(?P<double>[^\"\n]{3,200})\"|'(?P<single>[^'\n]{3,200})'"
    r"|(?P<bare>[^\s\"'`|;<>]{3,200}))"
)
_WITHIN: Final = r"[^\n|;]{0,300}?[ \t]"
COMMANDS: Final = tuple(
    (hint, re.compile(pattern, re.ASCII))
    for hint, pattern in (
        (
            "curl",
            rf"\bcurl\b{_WITHIN}(?:-\w{{0,6}}[uU]|--user|--proxy-user)[ =]?(?:\"[^\"\s:]{{0,100}}:"
            r"(?P<double>[^\"\n]{3,200})\"|'[^'\s:]{0,100}:(?P<single>[^'\n]{3,200})'"
            r"|[^\s:\"']{0,100}:(?P<bare>[^\s\"'`|;<>]{3,200}))",
        ),
        (
            "http",
            rf"\bhttps?\b{_WITHIN}(?:-a|--auth)[ =]?[\"']?[^\s:\"']{{1,100}}:"
            r"(?P<bare>[^\s\"']{3,200})",
        ),
        ("sshpass", rf"\bsshpass\b{_WITHIN}-p[ \t]{{0,2}}{_VALUE}"),
        ("mysql", rf"\bmysql\w{{0,12}}\b{_WITHIN}-p(?=\S){_VALUE}"),
        ("mariadb", rf"\bmariadb(?:-\w{{0,12}})?\b{_WITHIN}-p(?=\S){_VALUE}"),
        ("mongo", rf"\bmongo\w{{0,12}}\b{_WITHIN}-p[ =]?{_VALUE}"),
        ("redis-cli", rf"\bredis-cli\b{_WITHIN}(?:-a|--pass)[ =]?{_VALUE}"),
        ("login", r"\b(?:docker|podman|helm|az|oc|skopeo|buildah|nerdctl)(?:[ \t]\w{1,20})?"
                  rf"[ \t]login\b{_WITHIN}-p[ =]?{_VALUE}"),
        ("ldap", rf"\bldap\w{{1,12}}\b{_WITHIN}-w[ =]?{_VALUE}"),
        ("sqlcmd", rf"\bsqlcmd\b{_WITHIN}-P[ =]?{_VALUE}"),
        ("snowsql", rf"\bsnowsql\b{_WITHIN}-p[ =]?{_VALUE}"),
        ("smbclient", rf"\bsmbclient\b{_WITHIN}-U[ =]?[^\s%]{{1,80}}%{_VALUE}"),
        ("openssl", rf"\bopenssl\b{_WITHIN}-pass(?:in|out)?[ =]pass:{_VALUE}"),
        ("htpasswd", rf"\bhtpasswd\b{_WITHIN}-\w{{0,5}}b\w{{0,5}}[ \t]\S{{1,90}}"
                     rf"[ \t]\S{{1,60}}[ \t]{_VALUE}"),
        ("rabbitmqadmin", rf"\brabbitmqadmin\b{_WITHIN}-p[ =]?{_VALUE}"),
        ("xfreerdp", rf"\bxfreerdp\w?\b{_WITHIN}/p:{_VALUE}"),
        (
            "--",
            r"(?<![\w-])--(?!(?:[a-z]{1,20}-)?(?:next|starting|continuation|lock"
            r"|change|page|client|request|product|action|unit|export|import)-token)"
            r"(?:[a-z]{1,20}-){0,3}(?:password|passwd|passphrase|pass|token|secret"
            rf"|api-?key|access-key|secret-key)[ \t]{{1,3}}{_VALUE}",
        ),
    )
)  # fmt: skip
# A line of .netrc, also over several lines of one entry.
_NETRC: Final = re.compile(
    r"\blogin[ \t]{1,8}(?!(?:anonymous|and|or|with|the|your)\s)\S{1,200}\s{1,8}"
    r"password[ \t]{1,8}(?P<bare>\S{3,200})",
    re.ASCII,
)
_EXAMPLE: Final = frozenset(
    """
    password passwd pass secret token pwd apikey api-key api_key string value text file stdin
    credentials key true false none null
    """.split()  # noqa: SIM905 - a quoted list cannot be read
)


def command_secrets(text: str, is_literal: Callable[[str], bool]) -> Iterator[tuple[int, int, str]]:
    """Give (start, end, kind) of every password that a command is given, if `is_literal` of it."""
    for hint, pattern in COMMANDS:
        if hint not in text:
            continue
        for match in pattern.finditer(text):
            yield from _check_match(match, is_literal, strict=hint == "--")
    if "login" in text and "password" in text:
        for match in _NETRC.finditer(text):
            yield from _check_match(match, is_literal, strict=False)


def _check_match(
    match: re.Match[str], is_literal: Callable[[str], bool], *, strict: bool
) -> Iterator[tuple[int, int, str]]:
    groups = {
        name: written_text
        for name, written_text in match.groupdict().items()
        if written_text is not None
    }
    name, written_text = next(iter(groups.items()))
    if written_text.lower() in _EXAMPLE or written_text.startswith(("-", "$", "@", "<", "%")):
        return
    # A long option is followed by all kinds of words; a literal has a digit, or is in quotes.
    if strict and not (any(map(str.isdigit, written_text)) and any(map(str.isalpha, written_text))):
        return
    if is_literal(written_text):
        yield (*match.span(name), "password")
