"""Input that troubles programs: texts, broken JSON, transcripts with damage. All written by us.

Made by rules, so that each kind of trouble is there in every place where it can stand.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

_TAGS = ("img", "svg", "body", "iframe", "input", "details", "video", "a", "form", "math")
_EVENTS = ("onerror", "onload", "onfocus", "ontoggle", "onmouseover")
_CALLS = ("alert(1)", "alert`1`", "fetch('//x')", "document.title='x'")
_ORDERS = (
    "'; DROP TABLE turns; --",
    "1' OR '1'='1",
    "$(touch /tmp/x)",
    "`touch /tmp/x`",
    "| ls",
    "; ls",
    "%s%s%n",
    "{0.__class__}",
    "${7*7}",
    "{{7*7}}",
    "<%= 7*7 %>",
    "../../etc/passwd",
    "..\\..\\x",
    "/dev/null",
    "C:\\Windows",
    "\\\\host\\share",
    "file:///etc/passwd",
    "CON",
    "NUL",
    "aux.txt",
    "COM1",
    ".",
    "..",
    "...",
    "~",
    "~root",
    "-rf",
    "--help",
    "-",
    "--",
    "@file",
    "*",
    "?",
    "[a-z]",
    "!!",
    "&&",
    ">x",
    "<x",
    "#",
    "%00",
    "%2e%2e%2f",
    "a/b",
    "a\\b",
    "a:b",
    "a|b",
    'a"b',
    "a'b",
)
_WORDS = (
    "undefined",
    "null",
    "None",
    "nil",
    "true",
    "True",
    "FALSE",
    "NaN",
    "nan",
    "Infinity",
    "-inf",
    "0",
    "-0",
    "00",
    "1e309",
    "-1e-400",
    "0x1F",
    "0b1",
    "1_000",
    "1,000",
    "1.0.0",
    "٣",
    "Ⅷ",
    "½",
    "9007199254740993",
    "18446744073709551616",
    "2026-02-30",
    "24:60",
    "1970-01-01T00:00:00Z",
    "constructor",
    "__proto__",
    "hasOwnProperty",
    "toString",
    "self",
    "import",
    "select",
    "ORDER BY",
)
_SCRIPTS = (
    "∑∏∂∆≠≈",
    "渡し船は九時に出る",
    "フェリーノハナシ",
    "時刻表漢字",
    "나룻배 시간표",
    "부두 번호",
    "Ⱥ",
    "ﬀﬁﬂ",
    "ſt",
    "İstanbul ıI",
    "Straße ẞ",
    "ΣΑΣ σας",
    "Дональд",
    "שלום עולם",
    "مرحبا بالعالم",
    "हिन्दी में",
    "ภาษาไทย",
    "ខ្មែរ",
    "မြန်မာ",
    "தமிழ்",
    "ქართული",
    "Հայերեն",
    "አማርኛ",
    "ᚠᛇᚻ",
    "𐎠𐎡",
    "👩‍👩‍👧‍👦",
    "🏳️‍🌈",
    "👋🏿",
    "🇩🇪🇫🇷",
    "1️⃣",
    "☃️",
    "ʕ•ᴥ•ʔ",
    "𝒜𝓃𝒶",
    "𝔘𝔫𝔦",
    "ａｂｃ",
    "①②",
    "Ａ１",
    "a\u0301\u0302\u0303" * 9,
    "Z\u0337\u0323a\u0336l\u0334",
    "\u0301",
    "e\u0301 é",
    "\u202etxet",
    "\u2066a\u2069",
    "\u200bzero\u200b",
    "a\u00adb",
    "\ufeffBOM",
    "\ufffe",
    "\uffff",
    "\U0010ffff",
    "\ue000",
    "\u2028\u2029",
    "\u0085",
    "\u00a0\u2003\u3000",
    "\u180e",
    "\u2800",
)


def naughty_strings() -> list[str]:
    """Texts that programs take for something else, or cannot show, keep or compare."""
    tags = (
        f"<{tag} src=x {event}={quote}{call}{quote}>"
        for (number, tag), event, (call, quote) in itertools.product(
            enumerate(_TAGS), _EVENTS, zip(_CALLS, ("", '"', "'", " "), strict=True)
        )
        if number % 2 == 0 or call == "alert(1)"
    )
    breaks = (
        f"{opening}<script>{call}</script>"
        for opening in ("", '">', "'>", "</title>", "-->", "]]>", "</textarea>", "*/", "\\", "\x00")
        for call in _CALLS
    )
    schemes = (
        f"{scheme}{call}"
        for scheme in ("javascript:", "JaVaScRiPt:", "java\tscript:", "&#106;avascript:", "data:,")
        for call in _CALLS
    )
    control = (f"a{chr(code)}b" for code in (*range(1, 32), 127, *range(128, 160)))
    spaces = (f"{chr(code)}x{chr(code)}" for code in (0x20, 0x09, 0x1680, *range(0x2000, 0x200B)))
    long = ("a" * 1_000, "ab " * 500, "é" * 300, "🧠" * 200, "/" * 256, "." * 255, "\\" * 100)
    others = ("", " ", "\t\n", "\x00", "a\x00b", '"', "'", "\\", "\\u0000", "\\ud800", "\r\n")
    every = (
        *_WORDS,
        *_ORDERS,
        *_SCRIPTS,
        *control,
        *spaces,
        *long,
        *others,
        *tags,
        *breaks,
        *schemes,
    )
    return list(dict.fromkeys(every))


_GOOD = '{"name":"caf\\u00e9\\n","list":[1,-2.5e3,true,null,{"":"x"}],"more":{"a":"b"}}'
_TOKENS = (
    "True",
    "NULL",
    "nan",
    "Infinity",
    "-Infinity",
    "+1",
    "01",
    "-01",
    "1.",
    ".1",
    "1e",
    "1e+",
    "0x1F",
    "-",
    "--1",
    "1_000",
    "1 000",
    "'a'",
    '"a',
    'a"',
    '"\\x41"',
    '"\\a"',
    '"\\u12"',
    '"\\u12G4"',
    '"a\nb"',
    '"\x00"',
    '"\x1f"',
    '"\\"',
    "[",
    "]",
    "{",
    "}",
    "[,]",
    "[1,]",
    "[,1]",
    "[1,,2]",
    "[1 2]",
    "[1:2]",
    "[1",
    "1]",
    "{,}",
    '{"a"}',
    '{"a":}',
    '{"a" 1}',
    '{"a":1,}',
    "{a:1}",
    "{1:1}",
    "{'a':1}",
    '{"a":1 "b":2}',
    '{"a":1,,"b":2}',
    '{"a"::1}',
    "// c",
    "/* c */ 1",
    "# c",
    '{"a":1}}',
    "[1]]",
    '"a" "b"',
    "1 2",
    "[] []",
    "{} x",
    "undefined",
    "a",
    "@",
    "\\u0031",
    "é",
    "<a/>",
    "a=1",
    "---\na: 1",
    "[1;2]",
    '["a";]',
    "(1)",
    "[tru]",
    "[nul]",
    "[fals]",
    "*",
    "&a",
    "!",
)
_VALID = (
    "[]",
    "{}",
    "0",
    "-0",
    "1e400",
    "-1e-400",
    "1e5",
    "123456789012345678901234567890",
    '""',
    '"\\u0000"',
    '"\\ud83e\\udde0"',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\/\\b\\f"',
    '"\x7f"',
    "true",
    "false",
    "null",
    " [ ] ",
    "\n\t{\r}\n",
    '{"a":1,"a":2}',
    '{"":0}',
    "[[[[[[]]]]]]",
    '{"a":{"a":{"a":[]}}}',
    '["\u2028"]',
    '["\uffff"]',
    "[1,2.50,3e0]",
    '{"turns":null}',
    '{"turns":[]}',
    '{"turns":{}}',
    '{"conversation_id":1,"turns":[]}',
    '{"turns":[1]}',
)
_BYTES = (
    b"\xff",
    b"\xfe\xff",
    b"\x80",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xe2\x28",
    b"\x00",
    b"\x1b[2J",
    b"\xef\xbb\xbf",
)


def broken_json() -> dict[str, bytes]:
    """Documents by name: most are no JSON, some are JSON that readers do not agree about."""
    found = {f"valid_{n}": text.encode("utf-8") for n, text in enumerate(_VALID)}
    found |= {f"token_{n}": text.encode("utf-8") for n, text in enumerate(_TOKENS)}
    found |= {f"in_list_{n}": f"[0,{text}".encode() for n, text in enumerate(_TOKENS)}
    found |= {f"cut_{at}": _GOOD[:at].encode() for at in range(len(_GOOD))}
    data = _GOOD.encode()
    for number, some in enumerate(_BYTES):
        for at in (0, 1, 10, len(data) // 2, len(data)):
            found[f"bytes_{number}_{at}"] = data[:at] + some + data[at:]
    found["utf16"] = _GOOD.encode("utf-16")
    found["utf16_be"] = _GOOD.encode("utf-16-be")
    found["utf32"] = _GOOD.encode("utf-32")
    found["latin1"] = '["caf\xe9"]'.encode("latin-1")
    found["empty"] = b""
    found["100000_opening_arrays"] = b"[" * 100_000
    found["50000_opening_objects"] = b'{"":' * 50_000
    return found


def _lines(*values: object) -> str:
    return "".join((v if isinstance(v, str) else json.dumps(v)) + "\n" for v in values)


def _claude_code(session: str, said: list[tuple[str, str]]) -> Iterator[object]:
    for number, (role, text) in enumerate(said):
        yield {
            "type": role,
            "uuid": f"{session}-{number}",
            "parentUuid": f"{session}-{number - 1}" if number else None,
            "sessionId": session,
            "cwd": "/work/ferry",
            "timestamp": f"2026-03-0{1 + number % 9}T09:00:00Z",
            "message": {"role": role, "content": [{"type": "text", "text": text}]},
        }


def write_transcripts(folder: Path) -> None:
    """Transcripts as four programs write them, with the damage that is found in real ones."""
    talk = [
        ("user", "The ferry's timetable is wrong on Sundays."),
        ("assistant", "It reads the file for holidays; I will fix `timetable.py`."),
        ("user", "Keep *both* tables, please: `summer` and `winter`."),
        ("assistant", "Done. Sundays come from the table of the season."),
        ("user", "And the fares?"),
        ("assistant", "They stay at two a zone."),
    ]
    claude = folder / "claude_code"
    claude.mkdir(parents=True)
    edge = list(_claude_code("edges", talk))
    # Lines that are JSON and no objects, as an interrupted program leaves them.
    edge[2:2] = ["null", "42", '"a line"', "[1, 2]"]
    (claude / "edges.jsonl").write_text(_lines(*edge))
    (claude / "second.jsonl").write_text(_lines(*_claude_code("second", talk[::-1])))
    codex = folder / "codex"
    codex.mkdir()

    def rollout(key: str, *texts: str) -> list[object]:
        begin = {"type": "session_meta", "payload": {"id": key, "cwd": "/work/ferry"}}
        said = (
            {
                "type": "response_item",
                "timestamp": f"2026-03-02T10:0{n}:00Z",
                "payload": {
                    "type": "message",
                    "role": "user" if n % 2 == 0 else "assistant",
                    "content": [{"type": "input_text", "text": text}],
                },
            }
            for n, text in enumerate(texts)
        )
        return [{"timestamp": "2026-03-02T10:00:00Z", **begin}, *said]

    whole, torn = "1" * 8 + "-1111-4111-8111-" + "1" * 12, "6" * 8 + "-6666-4666-8666-" + "6" * 12
    (codex / f"rollout-2026-03-02T10-00-00-{whole}.jsonl").write_text(
        _lines(*rollout(whole, "List the zones.", "North, Harbour, Islands."))
    )
    (codex / f"rollout-2026-03-02T11-00-00-{torn}.jsonl").write_text(
        _lines(*rollout(torn, "A line before the damage."), "{torn in the midd")
    )
    chats = [
        {
            "id": f"chat-{n}",
            "title": f"Zone {n}",
            "create_time": 1_770_000_000 + n,
            "mapping": {
                "root": {"id": "root", "parent": None, "children": ["a"], "message": None},
                "a": {
                    "id": "a",
                    "parent": "root",
                    "children": ["b"],
                    "message": {
                        "author": {"role": "user"},
                        "content": {"content_type": "text", "parts": [f"Where is zone {n}?"]},
                    },
                },
                "b": {
                    "id": "b",
                    "parent": "a",
                    "children": [],
                    "message": {
                        "author": {"role": "assistant"},
                        "content": {"content_type": "text", "parts": [f"Pier {n}."]},
                    },
                },
            },
            "current_node": "b",
        }
        for n in range(5)
    ]
    chatgpt = folder / "chatgpt"
    chatgpt.mkdir()
    (chatgpt / "conversations.json").write_text(json.dumps(chats))
    sharegpt = [
        {
            "id": f"identity_{n}",
            "conversations": [
                {"from": "human", "value": f"Who sails on day {n}?"},
                {"from": "gpt", "value": f"Crew {n % 3} sails."},
            ],
        }
        for n in range(40)
    ]
    (folder / "sharegpt.json").write_text(json.dumps(sharegpt))
