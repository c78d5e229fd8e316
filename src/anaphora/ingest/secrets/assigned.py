"""Secrets that are recognised by the word before them: values of passwords, tokens and keys.

`assigned_secrets` finds values that are assigned to a name such as password, secret, token or
api_key and that read as a literal. No rule measures randomness: a commit's hash is as random as a
key. Every pattern is bounded, so a text of any length takes linear time.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from anaphora.ingest.secrets.examples import (
    is_example,
    is_named_after_its_use,
    is_resource,
)
from anaphora.ingest.secrets.signs import NAME_PARTS, first_of, picked

_WORDS = r"passwords?|passwd|passphrase|passcode|passwort|contrase(?:ñ|n)a|mot[_ ]de[_ ]passe|pwd"
_NAMES = (
    rf"{_WORDS}|secret|token|credentials?|(?:db|database|key|user|admin|root|login)[_-]?pass(?![wpc])"
    r"|(?:api|auth|service|account|db|database|priv|private|client|access|secret|encryption|signing"
    r"|master|app|bot|deploy|license|storage)[_-]?key"
)
_MOST = 400
"""Characters of a value that are looked at; all that goes on behind them belongs to it as well."""
_GOES_ON = re.compile(r"[^\s\"'`,;]*")
# Patterns are tried at every letter, so none begins with what repeats.
_ASSIGNED = re.compile(
    rf"(?P<name>{_NAMES})(?P<suffix>[\w-]{{0,30}})"
    r"(?:\\{0,3}[\"'`]?\]?(?:\*\*)?[ \t]{0,3}(?P<link>:=|=>|!==?|={1,3}|::?|[|>])(?:\*\*)?"
    r"[ \t]{0,3}(?:\*\*|\\{1,3}(?=[\"']))?"
    r"|(?:\.assign)?\([ \t]{0,2}(?=[\"'])|(?P<is>[ \t]{1,3}is:?[ \t]{1,3}))"
    rf"(?P<value>@?\"[^\"\s]{{6,{_MOST}}}\"|'[^'\s]{{6,{_MOST}}}'|`[^`\s]{{6,{_MOST}}}`"
    rf"|(?<=\\)[\"'][^\s\"'\\]{{6,{_MOST}}}\\{{1,3}}[\"']"
    rf"|[^\s\"'`,;]{{6,{_MOST}}}|[\"'`][^\s\"'`]{{{_MOST}}})",
    re.IGNORECASE,
)
_FIELD = re.compile(rf"(?P<name>{_NAMES})(?P<suffix>[\w-]{{0,30}})\Z", re.IGNORECASE)
_COMPARED = re.compile(
    rf"(?P<value>\"[^\"\s]{{8,200}}\"|'[^'\s]{{8,200}}')[ \t]{{0,3}}[!=]={{1,2}}[ \t]{{0,3}}"
    rf"[\w.]{{0,40}}(?:{_NAMES})",
    re.IGNORECASE,
)
_BARE_KEY = re.compile(
    r"(?<![\w.-])key[\"']?[ \t]{0,3}[=:][ \t]{0,3}([\"'])(?P<value>[A-Za-z0-9+/]{32,398}={0,2})\1",
    re.IGNORECASE,
)
_BELOW = re.compile(r"=[ \t]{0,8}\r?\n[ \t]{1,16}(?P<value>\S{6,400})[ \t]{0,8}(?=\r?\n|\Z)")
_IS_PASSWORD = re.compile(_WORDS + r"|pass", re.IGNORECASE)
# password2, password_secure and passwordSecure name a secret; tokenizer and secretary do not.
_SUFFIX = re.compile(r"\d{0,3}|[_-]\w[\w-]*|[A-Z]\w*")
_ABOUT = re.compile(
    r"name|id|file|path|dir|url|uri|arn|ref|length|len|size|count|limit|min|max|type|kind|policy"
    r"|field|label|hint|format|version|expir|ttl|age|timeout|at$|date|time|usage|used|index|column"
    r"|placeholder|prompt|error|status|hash|reset|manager|regex|pattern|rotation|start|offset|pos"
    r"|attr|param|spec|header|cookie|prefix|suffix|class|handler|provider|store|algorithm|cipher"
    r"|event|state|scope|schema|method|func|source|origin|number|less$|encrypt|encod|mode$",
    re.IGNORECASE,
)
_PLAIN_SUFFIXES = re.compile(
    r"[_-]?(?:value|secure|text|string|str|prod|dev|test|staging)\d*", re.I
)

_PLACEHOLDER = re.compile(
    r"\[redacted.*|.*%\(\w+\)[sdr].*|.*(?:\.{3}|…).*|.*[{}]\".*|&(?:lt|#60|#x3c);.*|[A-Za-z ]+:"
    r"|[A-Za-z_]\w*(?:\.\w+)*\[-?\w*\](?:\.\w+|\[-?\w*\])*"  # jobs[0].id
    r"|(?:your|enter|insert|replace|change|choose|example|sample|dummy|placeholder|todo|fixme)"
    r"[_ -].*|.*[_ -](?:here|me)|<.*>|\{.*\}|\[.*\]|%.*%|\(.*\)|"
    r"\$.*|(.)\1*|x{3,}.*|\*{3,}.*|\.{3,}.*|@\w+",
    re.IGNORECASE | re.DOTALL,
)
_SCHEMA_WORDS = frozenset(
    """
    required optional disabled enabled encrypted incorrect password passwords username undefined
    function invalid_ forgotten redacted unchanged rejected accepted protected generated anonymous
    external internal authorization credentials bearer_token confirmed confirmation validation
    same-origin cross-origin
    """.split()  # noqa: SIM905 - a quoted list cannot be read
)
_A_NAME = re.compile(
    r"[a-z]+(?:[_.-][a-z]+)*[_.-](?:password|passwd|token|secret|key|user|name|field|id|label|error"
    r"|hint|input|reset|page|form)s?|[a-z]+(?-i:Password|Token|Secret|Key)|(?:password|passwd|token|secret|user|auth)(?:[_.-][a-z]+)+",
    re.IGNORECASE,
)
# What an unquoted value is in code and in ordinary writing.
_CODE = re.compile(
    r"[&*!~]{0,3}[A-Za-z_$]\w*(?:(?:\.|->|::|[?!]\.)[A-Za-z_]\w*)*[?!]{0,2}\.?[(\[<].*"
    r"|[&*!~]{0,3}[A-Za-z_$]\w*(?:(?:\.|->|::|[?!]\.)[A-Za-z_]\w*)+[?!]?"
    r"|[&*~]{1,3}[A-Za-z_]\w*"
    r"|_{0,2}[a-z]+\d{0,4}(?:_(?:[a-z]+\d{0,4}|\d{1,2}))+|[(\[{\\].*|\W*|(?:qr|qw|qq|[msq])([/{|(]).*[/}|)][a-z]{0,4}|.*(?:&&|\|\||=>|\){|}}).*"
    r"|[A-Z]\w*(?:Key|Token|Secret|Password|Credential)s?(?:Types?)?|(?:self|this)\..*|[^(]*[+*/-][a-z_.]+\(.*",
    re.DOTALL,
)
_ORDINARY = re.compile(
    r"[a-z]?\d+(?:[.:/-]\d+)*[a-z%]{0,3}"  # numbers, versions, dates, times, sizes
    r"|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-][\d:]+)?"
    r"|\d{1,3}-[A-Za-z]+(?:-[A-Za-z]+)*|[A-Za-z]+-\d{1,2}|\d+(?:st|nd|rd|th)"
    r"|[^@\s]+@[\w-]+(?:\.[\w-]+)+|.*://.*|(?:~|\.{1,2})?(?![\w+/]{22,}={1,2}\Z)[/\\].*|[A-Za-z]:\\.*"
    r"|.*\.(?:pem|key|json|ya?ml|txt|md|py|js|ts|crt|env)"
    r"|\w+-(?:encoded|encrypted|hashed|based|protected|character|digit)",
    re.IGNORECASE | re.DOTALL,
)
_PIECE, _SMALL = re.compile(r"[A-Z]?[a-z]+|[A-Z]"), re.compile(r"[a-z]+")
_MARKS = re.compile(r"[!@#%^&*+?~$]")
_TRAILING = ".,;:!?)]}>*_"


def assigned_secrets(text: str, lowered: str) -> Iterator[tuple[int, int, str]]:
    """Give (start, end, kind) of every value that is assigned to the name of a secret.

    Never takes prose, code or a placeholder for one: "password: see the vault",
    `token = get_token()`, `api_key: ${API_KEY}` pass. Between the name and the value is `=`, `:`,
    `:=`, `=>`, `==`, `!=`, an opening parenthesis with a quote, or, for passwords, the word "is".
    A value in quotes is a literal of 8 characters or more without a space. A value without quotes
    also needs a digit and a letter (or a mark such as !), so that a word of prose never counts.
    After a word for a password 6 characters are enough if they have letters and digits: people
    choose short ones. Alone on the line below `password =`, further in, a value counts as on the
    same line; `key = "…"` counts where the literal is base64. `lowered` is the text in lower case.
    """
    # One letter, "İ", becomes two in lower case: then no place is where it is found, and every
    # line is looked through.
    same_length = len(lowered) == len(text)
    named_lines = picked(
        text, first_of(lowered, NAME_PARTS) if same_length else first_of(text, ("",))
    )
    for start, end, kind in _find_assigned(named_lines.text):
        yield named_lines.place(start), named_lines.place(end), kind
    # `password =` and the value alone on the line below, further in, as in ini files.
    for match in _BELOW.finditer(text):
        start = match.start()
        while start > max(0, match.start() - 3) and text[start - 1] in " \t":
            start -= 1
        head = text[max(0, start - 120) : start].rpartition("\n")[2]
        field = _FIELD.search(head)
        written_value = match.group("value")
        if field is None or not _names_a_secret(field) or written_value[-1] in "([{,;:\\":
            continue
        is_quoted = written_value[0] in "\"'" and written_value[-1] == written_value[0]
        inner_text = written_value[1:-1] if is_quoted else written_value
        literal = len(inner_text) >= 8 and is_literal(inner_text)
        if literal and (is_quoted or _is_unquoted_literal(inner_text, digits=False)):
            start = match.start("value") + is_quoted
            yield start, start + len(inner_text), _classify(field.group("name"))


def _find_assigned(text: str) -> Iterator[tuple[int, int, str]]:
    """`assigned_secrets` of lines that contain a part of such a name."""
    at = 0
    while match := _ASSIGNED.search(text, at):
        span = _find_value(text, match)
        if span is None:
            # The value can be the name of the next one: `password: secret: …`.
            at = match.end("name")
            continue
        start, end = span
        if match.end("value") - match.start("value") >= _MOST and end == match.end("value"):
            # Once for each value that counts, so the whole stays linear.
            tail = _GOES_ON.match(text, end)
            end = tail.end() if tail is not None else end
        yield start, end, _classify(match.group("name"))
        at = end
    for match in _COMPARED.finditer(text):
        literal = match.group("value")[1:-1]
        if is_literal(literal) and _NAMED_IN_WORDS.fullmatch(literal) is None:
            yield match.start("value") + 1, match.end("value") - 1, "secret"
    # `key = "…"`, where the literal is base64 of 24 bytes or more and no name or word.
    for match in _BARE_KEY.finditer(text):
        literal = match.group("value")
        classes = ("[a-z]", "[A-Z]", "[0-9].*[0-9].*[0-9]")
        if len(literal) % 4 or not all(re.search(letters, literal) for letters in classes):
            continue
        # DER of a public key or a certificate (RFC 5280) is no secret: both are a sequence that
        # begins with a sequence; a private key begins with its version.
        head = base64.b64decode(literal[:12])
        size_bytes = head[1] & 0x7F if head[1] & 0x80 else 0
        if head[0] != 0x30 or size_bytes > 3 or head[2 + size_bytes] != 0x30:
            yield (*match.span("value"), "secret")


def reads_as_password(value: str) -> bool:
    """Whether a word without quotes is a password, and no word of the sentence or of code."""
    long = len(value) >= 8 and is_literal(value) and _is_unquoted_literal(value, digits=False)
    return long or _is_short_password(value)


def is_secret_value(name: str, value: str) -> str | None:
    """The kind of secret that `value` is when a field `name` holds it, or None."""
    match = _FIELD.search(name[-120:])
    if match is None or not _names_a_secret(match) or len(value) < 6:
        return None
    if any(character.isspace() for character in value):
        return None
    word = match.group("name")
    if _OF_NO_WORDS.search(word) and _NAMED_IN_WORDS.fullmatch(value):
        return None
    literal = is_literal(value) if len(value) >= 8 else False
    is_short = _IS_PASSWORD.fullmatch(word) is not None and _is_short_password(value)
    return _classify(word) if literal or is_short else None


def _classify(name: str) -> str:
    return "password" if _IS_PASSWORD.search(name) else "secret"


def _find_value(text: str, match: re.Match[str]) -> tuple[int, int] | None:
    """The span of the value of the name in `match`, or None if it is no secret."""
    text_before = text[max(0, match.start() - 40) : match.start()]
    # The name may be in one of our own marks: `[redacted:aws-secret-key]`.
    is_redaction = (
        "[redacted:" in text_before and "]" not in text_before[text_before.rfind("[redacted:") :]
    )
    if is_redaction or not _names_a_secret(match):
        return None
    # Of a table the name and its value are two cells, of XML an element.
    line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
    if match.group("link") == "|" and not line.lstrip().startswith("|"):
        return None
    is_element = re.search(r"<[\w:.-]*\Z", text_before) and "</" in match.group("value")
    if match.group("link") == ">" and not is_element:
        return None
    start, end, is_quoted = _strip_quotes(text, match)
    written_value = text[start:end]
    if not match.group("link"):
        # A call that is given the name of what it looks up, or a service and then its user.
        is_lookup = _GETTER.search(text, max(0, match.start() - 10), match.start()) is not None
        several = _NEXT_ARGUMENT.match(text, match.end() - 1) is not None
        if is_lookup or (several and _NAMED_IN_WORDS.fullmatch(written_value) is not None):
            return None
    is_sentence = match.group("is") is not None
    password = _IS_PASSWORD.search(match.group("name")) is not None
    if not password:
        # A token of a parser or of a list, or a comparison with a word or a number.
        text_above = text[max(0, match.start() - 130) : match.start()]
        plain = written_value.isdecimal() or is_named_after_its_use(written_value)
        of_request = _ONE_REQUEST.search(text_above) and _NUMBER_OF_ONE.fullmatch(written_value)
        is_comparison = match.group("link") in {"==", "===", "!=", "!=="}
        of_no_words = is_comparison or _OF_NO_WORDS.search(match.group("name"))
        in_words = of_no_words and _NAMED_IN_WORDS.fullmatch(written_value)
        if is_sentence or plain or _NO_CREDENTIAL.search(text_above) or of_request or in_words:
            return None
    literal = len(written_value) >= 8 and is_literal(written_value)
    if not is_quoted:
        literal = literal and _is_unquoted_literal(
            written_value, digits=password and not is_sentence
        )
    return (start, end) if literal or (password and _is_short_password(written_value)) else None


_GETTER = re.compile(r"(?:get|has|read|load|fetch|find|check|delete|remove|lookup|ask)[_]?\Z", re.I)
_NEXT_ARGUMENT = re.compile(r"[\"']\s{0,4},\s{0,4}[\"']")


# A token of a list's next page, or the public half of a key, opens nothing.
_NO_CREDENTIAL = re.compile(
    r"(?:public[_-]?key|page|next|sync|continuation|cancell?ation|resume|syntax|lexer|lock|change"
    r"|x-(?:amz|goog)"
    r"|[\"'][A-Z]\w*::(?:\w+::)?\w*|\barn:[^\s\"'<]{1,120}:)[ _-]?\Z",
    re.IGNORECASE,
)
_ONE_REQUEST = re.compile(
    r"(?:request|client|idempotency|action|import|export|unit|product)[_-]?\Z", re.I
)
_NUMBER_OF_ONE = re.compile(r"[0-9a-f]{8}-[\w-]{4,40}|[a-z]+(?:-[a-z]+)*-[a-z0-9]{8,20}", re.I)
_NAMED_IN_WORDS = re.compile(
    r"_?[A-Z]?[a-z]+(?:(?:[_./:-][A-Z]?|[A-Z])[a-z]+)*\d?|[A-Z]{2,}(?:[_.-][A-Z]{2,})*"
)


# Keys and tokens are made by machines; a secret may be a phrase that a person thought of.
_OF_NO_WORDS = re.compile(r"(?:token|key|credentials?)\Z", re.IGNORECASE)


_NEXT_ONE = re.compile(r"&(?:[A-Za-z_]{2,30}=)?")


def _strip_quotes(text: str, match: re.Match[str]) -> tuple[int, int, bool]:
    """Start and end of the value itself, and whether it was in quotes."""
    start, end = match.span("value")
    if text[start - 1] == "\\" and text[start] in "\"'":
        return start + 1, start + len(text[start:end].rstrip("\\\"'")), True
    if match.group("link") == ">" and "</" in text[start:end]:
        return start, text.index("</", start, end), False
    if end - start > 1 and text[start] in "\"'`@" and text[end - 1] in "\"'`":
        return start + (2 if text[start] == "@" else 1), end - 1, True
    if text[start] in "\"'`" and end - start > _MOST:
        return start + 1, end, True
    in_query = "?" in text[max(0, match.start() - 40) : match.start()]
    if (next_one := _NEXT_ONE.search(text, start, end)) and (in_query or next_one.group() != "&"):
        end = next_one.start()
    return start, start + len(text[start:end].rstrip(_TRAILING)), False


def _names_a_secret(match: re.Match[str]) -> bool:
    suffix = match.group("suffix")
    name = match.group("name").lower()
    # A call has neither link: in a parser's source every other call makes a token.
    call = "link" in match.groupdict() and not (match.group("link") or match.group("is"))
    if name == "passwords" or (name == "token" and call):
        return False
    if not suffix or _PLAIN_SUFFIXES.fullmatch(suffix):
        return True
    if suffix[0].isupper() and match.group("name").isupper():  # TOKENIZER is one word
        return False
    return _SUFFIX.fullmatch(suffix) is not None and _ABOUT.search(suffix) is None


def is_literal(value: str) -> bool:
    """Whether a value is one itself, and no name, template or placeholder of one."""
    if _PLACEHOLDER.fullmatch(value) or value.lower() in _SCHEMA_WORDS:
        return False
    if is_example(value) or is_resource(value):
        return False
    return not (_A_NAME.fullmatch(value) or re.search(r"\{\w*\}|\$\{|\$\(|://", value))


def _is_unquoted_literal(value: str, digits: bool) -> bool:
    if digits and value.isdecimal():
        return True
    if _CODE.fullmatch(value) or _ORDINARY.fullmatch(value):
        return False
    if len(value) >= 10 and value.isalpha():
        # No words joined as names are: "BRezYMLkXPUe".
        pieces, runs = _PIECE.findall(value), _SMALL.findall(value)
        return len(runs) >= 3 and len(pieces) > len(value) / 2
    letter = re.search(r"[^\W\d_]", value) is not None
    digit = re.search(r"\d", value) is not None
    return letter and (digit or _MARKS.search(value[:-1]) is not None)


def _is_short_password(value: str) -> bool:
    """Letters and digits together, as `hunter2` has them."""
    if len(value) < 6 or not (re.search(r"[^\W\d_]", value) and re.search(r"\d", value)):
        return False
    return (
        is_literal(value) and _CODE.fullmatch(value) is None and _ORDINARY.fullmatch(value) is None
    )
