"""What guides say of limits and waits: constants of the code; and what looks like a claim there."""

from __future__ import annotations

from tools.claims.model import Claim, Value
from tools.claims.scan import NoClaim
from tools.claims.sources import at, constant, default, figure, written

__all__ = ["LIMITS", "NO_LIMITS"]

_MILLION = 1e-6
_HOOK = figure("hooks", "a hook with a warm process, over that, p50", ".0f")
_START = constant("surfaces.hooks.session:START_TOKENS")
_PROMPT = constant("surfaces.hooks.session:PROMPT_TOKENS")
_IDLE = constant("core.resident:DEFAULT_IDLE")
_DOCUMENT = "ingest.documents.base:DocumentLimits"
_IMPORT = "ingest.importers.base:Bounds"
_SERVER = "surfaces.rest.options:ServerOptions"
_REFRESH = constant("store.grants:LIFETIMES", take=lambda lives: lives["refresh"].days)
_LINES = "surfaces.connections"
_BOX = "deep.sandbox"


def _claim(name: str, *words: str, page: str = "docs/", **values: Value) -> Claim:
    return Claim(f"limits.{name}", words, values, page=page)


LIMITS: tuple[Claim, ...] = (
    _claim(
        "hooks",
        "at most {start} tokens: rules, preferences",
        "It is never more than {start} tokens",
        "of this project (at most {start} tokens)",
        "and its last sessions, in {start} tokens",
        start=_START,
    ),
    _claim(
        "prompts",
        "at most {hits} pieces and {prompt} tokens, nothing twice",
        "at most {hits} hits and {prompt} tokens",
        prompt=_PROMPT,
        hits=constant("surfaces.hooks.session:MOST_HITS", "word"),
    ),
    _claim(
        "prompt_tokens",
        "(at most {prompt} tokens), and nothing if nothing is",
        "what [stands out](../ranking.md), in {prompt} tokens",
        prompt=_PROMPT,
    ),
    _claim(
        "read_again",
        "each knows the other one's turns within about {seconds} seconds",
        "the transcript so far is imported about {seconds} seconds later",
        seconds=constant("surfaces.hooks.session:REREAD"),
    ),
    _claim(
        "restart",
        "it is given {seconds} seconds, and a write waits for it",
        seconds=default("client.connection:Patience", "restart"),
    ),
    _claim(
        "idle",
        "ends after {minutes} idle minutes",
        "It ends by itself after {minutes} idle minutes",
        "until nobody has asked it for {minutes} minutes",
        minutes=_IDLE,
    ),
    _claim(
        "hook_times",
        "a hook takes some {time} ms beyond the interpreter's start",
        "answers the next ones some {time} ms after the interpreter's start",
        time=_HOOK,
    ),
    _claim(
        "hook_alone",
        "each hook then takes about {time} s",
        time=figure("hooks", "a hook without a resident process, p50", ".1f"),
    ),
    _claim(
        "mcp_start",
        "answers after {time} s, because it loads no model first",
        time=figure("mcp_start", "spawn to initialize answered", ".1f"),
    ),
    _claim(
        "filters",
        "A filter has at most {levels} levels and {parts} parts",
        levels=constant("store.filters:MAX_DEPTH"),
        parts=constant("store.filters:MAX_NODES"),
    ),
    _claim(
        "memory_files",
        "A file has at most {most} characters; `view` shows {shown} at once",
        most=constant("adapters.memory_files:MOST_FILE", ",.0f"),
        shown=constant("adapters.memory_files:MOST_SHOWN", ",.0f"),
    ),
    _claim(
        "memory_file_sections",
        "A file of more than {size} characters is found by its sections",
        size=constant("adapters.memory_files:SECTION"),
    ),
    _claim(
        "client",
        "seconds for a call ({quick}), and for one that may take long ({long})",
        quick=default("client.connection:Patience", "quick"),
        long=default("client.connection:Patience", "long"),
    ),
    _claim(
        "retries",
        "how often a failed call is made again ({retries})",
        retries=default("client.connection:Patience", "retries"),
    ),
    _claim(
        "notes",
        "A note of up to {size} characters is one memory",
        size=constant("ingest.importers.markdown:_SHORT"),
    ),
    _claim(
        "grants",
        "refresh tokens {days} days from their last use",
        "that has not come for {days} days must ask again",
        days=_REFRESH,
    ),
    _claim(
        "registrations",
        "are limited to {burst} at once, then {rate}; {clients} clients are remembered",
        burst=constant("surfaces.mcp_server.oauth.app:_BURST"),
        clients=constant("store.grants:MOST_CLIENTS"),
        rate=constant("surfaces.mcp_server.oauth.app:_RATE").said({0.5: "one in two seconds"}),
    ),
    _claim(
        "core_block",
        "The block has a budget, {tokens} tokens unless",
        tokens=constant("core.config:CORE_TOKENS"),
    ),
    _claim(
        "lately",
        "the block says for {weeks} weeks what it replaced",
        weeks=constant("recall.context.standing:LATELY", "word", take=lambda span: span.days / 7),
    ),
    _claim(
        "documents",
        "more than {size} MB, {pages} pages, {characters} million characters, a DOCX that"
        " unpacks to"
        " more than {unpacked} MB",
        size=default(_DOCUMENT, "size", times=_MILLION),
        pages=default(_DOCUMENT, "pages"),
        characters=default(_DOCUMENT, "characters", times=_MILLION),
        unpacked=default(_DOCUMENT, "unpacked", times=_MILLION),
    ),
    _claim(
        "mails",
        "a file of more than {mails} mails",
        mails=default(_DOCUMENT, "mails"),
    ),
    _claim(
        "long_text",
        "a text of more than {size} characters: it is kept",
        size=constant("embed.chunking:PIECE", ",.0f"),
    ),
    _claim(
        "looked_for",
        "(of its first {size} characters)",
        size=constant("recall.survivors:LOOKED_FOR", ",.0f"),
    ),
    _claim(
        "endpoint_window",
        "(tokens of a part, {window})",
        window=constant("embed.endpoint:WINDOW"),
    ),
    _claim(
        "endpoint_batches",
        "**Batches** of up to {batch} texts; an endpoint that says it is busy (429, 5xx) is asked"
        " up to {attempts} times",
        batch=constant("embed.endpoint:_BATCH"),
        attempts=constant("embed.endpoint:_ATTEMPTS", "word"),
    ),
    _claim(
        "endpoint_away",
        "Whether it is back is looked for every {away} seconds",
        away=constant("embed.endpoint:_AWAY_SECONDS"),
    ),
    _claim(
        "endpoint_waits",
        "waits at most {one} seconds ({connect} where no server listens)",
        one=constant("embed.endpoint:_ONE_SECONDS"),
        connect=constant("embed.endpoint:_CONNECT_SECONDS"),
    ),
    _claim(
        "neutral",
        "{pairs} neutral questions and answers",
        pairs=constant("embed.neutral:PAIRS", take=len),
    ),
    _claim(
        "survivors",
        "At most {named} are listed",
        named=constant("ingest.memories:_NAMED").said({100: "a hundred"}),
    ),
    _claim(
        "imports",
        "a conversation or line of more than {characters} million characters, {messages}"
        " messages in"
        " one conversation, a zip that unpacks to more than {unpacked} MB and {times} times its"
        " size",
        characters=default(_IMPORT, "characters", times=1 / (1 << 20)),
        unpacked=default(_IMPORT, "unpacked", times=1 / (1 << 20)),
        times=default(_IMPORT, "times"),
        messages=default(_IMPORT, "messages").said({1e6: "a million"}),
    ),
    _claim(
        "mirror",
        "that happens by itself, every {seconds} seconds; `anaphora mirror watch`",
        seconds=constant("values.mirror:MIRROR_EVERY", "word"),
    ),
    _claim(
        "sync",
        "that happens by itself, every {seconds} seconds; `anaphora sync watch`",
        seconds=constant("values.sync:SYNC_EVERY", "word"),
    ),
    _claim(
        "tools",
        "everything that `search` finds, in {tokens} tokens",
        tokens=written("adapters.pydantic_ai:memory_toolset", "budget"),
    ),
    _claim(
        "exact_cap",
        "more than {count} memories in one namespace",
        count=constant("core.config:EXACT_CAP", ",.0f"),
    ),
    _claim(
        "rlimits",
        "address space ({base} MiB plus {copies} times the memory limit), {seconds} s of CPU, no"
        " file"
        " larger than 0 bytes, {files} open files",
        base=constant(f"{_BOX}.walls:_BASE_BYTES", times=1 / (1 << 20)),
        copies=constant(f"{_BOX}.walls:_COPIES", "word"),
        seconds=constant(f"{_BOX}.walls:_CPU_SECONDS"),
        files=constant(f"{_BOX}.walls:_OPEN_FILES"),
    ),
    _claim(
        "sandbox_arguments",
        "at most {size} KiB of JSON: at most {levels} levels deep, at most {values} values",
        size=default(f"{_BOX}.base:Limits", "argument_chars", times=1 / 1024),
        levels=constant(f"{_BOX}.crossing:MAX_DEPTH"),
        values=constant(f"{_BOX}.crossing:MAX_ARGUMENT_VALUES"),
    ),
    _claim(
        "refusals",
        "word for word (truncated at {size} characters)",
        size=constant(f"{_BOX}.crossing:_MESSAGE_CHARS"),
    ),
    _claim(
        "scrypt",
        "(scrypt, {size} MiB)",
        size=constant(
            "store.crypto.cipher:_SCRYPT", take=lambda cost: 128 * cost["n"] * cost["r"] / (1 << 20)
        ),
    ),
    _claim(
        "connections",
        "a request has {head} seconds to send its headers, and {body} between two pieces of its"
        " body; at {connections} connections",
        head=default(_SERVER, "head_seconds"),
        body=default(_SERVER, "body_seconds"),
        connections=default(_SERVER, "connections"),
    ),
    _claim(
        "log",
        "takes {lines} lines of a kind in {seconds} seconds",
        lines=constant(f"{_LINES}:_LINES", "word"),
        seconds=constant(f"{_LINES}:_SECONDS", "word"),
    ),
    _claim(
        "pairing",
        "**By a code** of {letters} characters",
        letters=constant("sync.pairing:new_code", "word", take=lambda code: len(code(bytes)) - 2),
    ),
    _claim(
        "pairing_time",
        "The code is valid for {minutes} minutes, once",
        minutes=constant("sync.pairing:PATIENCE", "word", times=1 / 60),
    ),
    _claim(
        "compacting",
        "After {entries} entries, or with `anaphora sync compact`",
        entries=constant("sync.client:_COMPACT"),
    ),
    _claim(
        "entries",
        "its size (a power of two from {size} KiB on)",
        size=constant("sync.entries:_SMALLEST", times=1 / 1024),
    ),
    _claim(
        "pool",
        "Each server process keeps up to {count} connections open",
        count=constant("store.db.connecting:POOL_SIZE"),
    ),
    _claim(
        "age",
        "Age costs at most {share} % of a score",
        share=constant("rank.memories:DECAY_FLOOR", take=lambda floor: round(100 * (1 - floor))),
    ),
    _claim(
        "topic",
        "With a topic, {share} of it is a package",
        share=constant("recall.context.warm_up:TOPIC_SHARE").said({0.5: "half"}),
    ),
    _claim(
        "program",
        "One program may run for {seconds} seconds",
        seconds=constant("core.config:EXECUTION_SECONDS"),
    ),
    _claim(
        "mcp_passages",
        "shows of a memory beyond {size} characters the passage that answers",
        size=constant("surfaces.mcp_server.render:_MOST"),
    ),
    _claim(
        "package",
        "at most {tokens} tokens unless you ask for more",
        tokens=default("api.projects:ProjectMemories.recall_context", "budget"),
    ),
    _claim(
        "seeds_passages",
        "of a turn of more than {tokens} tokens that does not fit the budget",
        tokens=constant("rank.budget:LONG"),
    ),
    _claim(
        "seeds_exact",
        "LanceDB from {count} vectors on",
        "up to {count} vectors of a namespace are scanned exactly",
        count=constant("core.config:EXACT_CAP", ",.0f"),
    ),
    _claim(
        "seeds_scanned",
        "The first {count} vectors are still scanned",
        count=constant("index.memories.vectors:_MOST", ",.0f"),
    ),
    _claim(
        "seeds_decay",
        "decay never goes below {floor}",
        floor=constant("rank.memories:DECAY_FLOOR"),
    ),
    _claim(
        "seeds_sure",
        "with a calibrated probability of {sure}",
        sure=constant("deep.recall:SURE"),
    ),
    _claim(
        "sync_answers",
        "{size} MiB for an answer or an entry, packed and unpacked, {values} JSON values, and"
        " {seconds} seconds for an answer of a server to be complete",
        size=constant("core.bounded:MOST_BYTES", times=1 / (1 << 20)),
        values=constant("core.bounded:_MOST_VALUES", ",.0f"),
        seconds=constant("sync.remotes.server:_PATIENCE"),
    ),
    _claim(
        "slow_requests",
        "or took longer than {seconds} s ({long} s for long ones such as deep recall)",
        seconds=default(_SERVER, "slow_seconds"),
        long=default(_SERVER, "slow_long_seconds"),
    ),
    _claim(
        "incident_days",
        "how many there were in the last {days} days",
        days=constant("ops.doctor.incidents:LATELY", times=1 / 86_400),
    ),
    _claim(
        "incident_log",
        "it takes at most {size} KB (the older half",
        size=constant("core.incidents:MOST", times=2 / 1000),
    ),
    _claim(
        "incident_log_newest",
        "the newest {size} KB",
        size=constant("core.incidents:MOST", times=2 / 1000),
    ),
    _claim(
        "log_bytes",
        "usually at most {size} MB each",
        size=constant("store.db.sqlite:LOG_BYTES", times=1 / (1 << 20)),
    ),
    _claim(
        "hook_states",
        "deleted {days} days after its last event",
        days=constant("surfaces.hooks.session:STATES", take=lambda age: age.days),
    ),
    _claim(
        "unexpected",
        "one line on standard error, exit code {code}",
        code=constant("surfaces.cli.unexpected:EXIT_UNEXPECTED"),
    ),
    _claim(
        "namespaces",
        "one open home was measured with {count} namespaces",
        count=at("scale_namespaces", "ways", "files", "count", form=",.0f"),
    ),
)

NO_LIMITS: tuple[NoClaim, ...] = (
    NoClaim(r"\(00\d\)|\*\*00\d, lines?[^*]*\*\*", "a seed and its lines", "docs/seeds.md"),
    NoClaim(r"(?s)- \*\*00\d, .*?(?=- \*\*Here)", "the statement of a seed", "docs/seeds.md"),
    NoClaim(
        r"(?s)- \*\*Here:\*\*.*?(?=- \*\*Why)|### [^\n]*",
        "held by the row of tests/conformance that names the section",
        "docs/seeds.md",
    ),
    NoClaim(
        r"\bThe base is \d+ packages\b", "held by tests/test_declared_imports.py", "docs/install.md"
    ),
    NoClaim(r"\bfour bytes of UTF-8\b", "the definition of a token", "docs/"),
    NoClaim(r"\bthe first two days\b|\btwenty minutes\b", "the title of a page", ""),
    NoClaim(r"\bmillions of rows\b", "in praise of another product", "docs/comparison.md"),
    NoClaim(r"\b10 chats\b", "the size of a data set of others", "docs/comparison.md"),
    NoClaim(r"U\+\d{4}|one character", "characters by their numbers", "docs/formats.md"),
    NoClaim(r"\b12 hex digits\b", "the form of an id", "docs/formats.md"),
    NoClaim(r"\b1 MiB of bytes\b|\b1 to 5\b", "the form of a member", "docs/formats.md"),
    NoClaim(r"(?m)^\|.*$", "held by tests/docs/test_formats_page.py", "docs/what-comes-in.md"),
    NoClaim(r"\bhalf a head\b|\bone of two ways\b", "no number", "docs/"),
    NoClaim(r"\b\w+ packages in pure Python\b", "named beside it", "docs/how-to/documents.md"),
    NoClaim(r"\b3\.1\d\b", "the version of Python", "docs/platforms.md"),
    NoClaim(r"\b[Aa]lways included\b", "the name of a view", "docs/"),
    NoClaim(
        r"\bWCAG 2\.2 AA\b|\b1280 and 390 pixels\b",
        "a standard and the widths of its test",
        "docs/the-page.md",
    ),
    NoClaim(
        r"\bone half of the data\b|\bthe tenth hit\b|\bthirty times\b",
        "no measurement",
        "docs/ranking.md",
    ),
    NoClaim(
        r"(?s)\bAs?sumptions, to be.*?average load\.", "assumptions, said to be so", "docs/scale.md"
    ),
    NoClaim(
        r"(?s)\*\*Requests\*\*: .*?recalls\.", "arithmetic on the assumptions", "docs/scale.md"
    ),
    NoClaim(r"\b93 new turns a second, 460\b", "arithmetic on the assumptions", "docs/scale.md"),
    NoClaim(
        r"\ba million active\b|\bten million users\b|\ba thousand memories to a million\b"
        r"|\bdoes with a million\b|\b--processes 4\b|\bfour processes\b|\btests run on 18\b"
        r"|\bPgBouncer before 1\.21\b|keepalives_idle` \(60\)|\(60\) on the database",
        "an assumption, a title, a setting or a version",
        "docs/",
    ),
)
