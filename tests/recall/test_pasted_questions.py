"""A question with a trace, a log or code pasted before or after it: what asks is heard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from anaphora import Memory

TALK = (
    "Shall we take the tram to the market on Saturday?",
    "The paint for the kitchen is in the cellar, two tins of it.",
    "My sister plays the cello on Thursdays, in the old library.",
    "It will rain until the evening, so the boots stay by the door.",
    "The invoice for the ladder came twice, I have sent one of them back.",
)

SHIPPING = "The KeyError 'shipping' in orders.py came from baskets without an address."
LEDGER = "PostingException: the ledger is not balanced, because Book.post rounds too early."
TUNNEL = "ECONNREFUSED on 5439 is the staging database: start the tunnel first."
PUMP = "The panic in queue/pump.go, index out of range, is an empty batch."
PARSER = "parser.rs panicked at line 212 for a file that begins with a BOM."
CART = "TypeError, cannot read properties of undefined: CartRow.tsx has a gift in it."
IMPORTER = "undefined method strip for nil in address.rb is from the old importer."
PRINTER = "NullReferenceException in InvoiceController.Print: the tenant has no printer profile."

KNOWN = (SHIPPING, LEDGER, TUNNEL, PUMP, PARSER, CART, IMPORTER, PRINTER)

PYTHON = (
    "Traceback (most recent call last):\n"
    + "".join(
        f'  File "/opt/venv/lib/python3.11/site-packages/uvicorn/step{n}.py", line {n}, in run\n'
        "    await self.app(scope, receive, send)\n"
        for n in range(60)
    )
    + '  File "/home/u/shop/app/orders.py", line 88, in total\n    return sum(prices[i])\n'
    "KeyError: 'shipping'"
)
JAVA = (
    'Exception in thread "main" org.acme.ledger.PostingException: posting 4711 is not balanced\n'
    + "".join(f"\tat org.springframework.web.Step{n}.go(Step{n}.java:{n})\n" for n in range(90))
    + "\tat org.acme.ledger.Book.post(Book.java:77)\n\t... 61 more"
)
LOG = (
    "".join(f"2026-05-01 10:{n % 60:02}:00,000 INFO worker heartbeat {n}\n" for n in range(200))
    + "2026-05-01 10:59:59,101 ERROR connect failed: ECONNREFUSED 127.0.0.1:5439\n"
    + "".join(f"2026-05-01 11:{n:02}:00,000 INFO worker heartbeat {n}\n" for n in range(20))
).strip()
GO = (
    "panic: runtime error: index out of range [0] with length 0\n\ngoroutine 18 [running]:\n"
    + "".join(
        f"net/http.Handler{n}.ServeHTTP(0xc00b6)\n\t/usr/local/go/src/net/http/s.go:{n} +0x2f\n"
        for n in range(60)
    )
    + "main.(*Pump).drain(0xc00011)\n\t/src/worker/queue/pump.go:41 +0x1d"
)
RUST = "thread 'main' panicked at src/parser.rs:212:17:\nstack backtrace:\n" + "".join(
    f"  {n}: core::panicking::panic_fmt\n             at /rustc/9fc6/library/core/p.rs:{n}\n"
    for n in range(60)
)
BROWSER = (
    "Uncaught TypeError: Cannot read properties of undefined (reading 'price')\n"
    "    at CartRow (CartRow.tsx:34:18)\n"
    + "".join(f"    at step{n} (./node_modules/react-dom/dev.js:{n}:18)\n" for n in range(90))
)
RUBY = (
    "app/models/address.rb:14:in `normalise': undefined method `strip' for nil (NoMethodError)\n"
    + "".join(f"\tfrom /usr/lib/ruby/gems/3.2/gems/rails/s.rb:{n}:in `call'\n" for n in range(90))
)
DOTNET = (
    "Unhandled exception. System.NullReferenceException: Object reference not set.\n"
    "   at Shop.InvoiceController.Print(Int32 id) in /src/InvoiceController.cs:line 52\n"
    + "".join(f"   at Microsoft.AspNetCore.Mvc.Step{n}.Next(State& next)\n" for n in range(90))
)
CODE = (
    "```python\n" + "def tram(market):\n    return paint(kitchen, cellar, boots)\n\n" * 40 + "```"
)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with Memory.open(tmp_path_factory.mktemp("home"), embedder="hashing") as opened:
        for number in range(60):
            opened.conversations.append_user(
                "work", f"{TALK[number % 5]} {'Yes. ' * (number // 5)}"
            )
        for known in KNOWN:
            opened.conversations.append_user("work", known)
        opened.ready()
        yield opened


@pytest.mark.promise("recall.pasted")
@pytest.mark.parametrize("form", ["{ask}\n\n{block}", "{block}\n\n{ask}", "{ask}\n{block}\n"])
@pytest.mark.parametrize(
    ("block", "known"),
    [
        (PYTHON, SHIPPING),
        (JAVA, LEDGER),
        (LOG, TUNNEL),
        (GO, PUMP),
        (RUST, PARSER),
        (BROWSER, CART),
        (RUBY, IMPORTER),
        (DOTNET, PRINTER),
    ],
    ids=["python", "java", "log", "go", "rust", "browser", "ruby", "dotnet"],
)
def test_the_lines_that_identify_a_trace_find_what_was_said_of_it(
    memory: Memory, block: str, known: str, form: str
) -> None:
    """The exception and the user's own frame are looked up, not the frames of libraries."""
    text = form.format(ask="Have we seen this before?", block=block)
    found = memory.recall_conversation(None, text, top_k=3)
    assert known in {hit.text for hit in found}
    assert {one.part for one in found.degraded} == {"query"}
    assert "the words that ask" in str(found.degraded)


@pytest.mark.promise("recall.pasted")
@pytest.mark.parametrize("block", [PYTHON, JAVA, LOG, GO, BROWSER, CODE], ids=range(6))
@pytest.mark.parametrize("form", ["{ask}\n\n{block}", "{block}\n\n{ask}"])
def test_a_question_is_heard_beside_what_is_pasted(memory: Memory, block: str, form: str) -> None:
    """What asks in the user's own words is found as if it had been asked alone."""
    ask = "When does my sister play the cello in the library?"
    text = form.format(ask=ask, block=block)
    asked = memory.recall_conversation(None, text, top_k=3)
    assert any("cello" in hit.text for hit in asked)
    assert any("cello" in hit.snippet for hit in memory.search(text, kinds=["turn"], top_k=3))


@pytest.mark.promise("recall.pasted")
@pytest.mark.parametrize(
    "text",
    [
        "What did `tram(market)` return?\n```python\ntram(market)\n```",
        "I said:\n- the paint is in the cellar\n- the boots stay by the door\nDid I say more?",
        "Error handling is boring. " * 30 + "What did we say about the cello?",
        "For the tram, see (a) the market; for the rain:\n    nothing\nWhat else?",
    ],
)
def test_words_of_ones_own_are_read_whole(memory: Memory, text: str) -> None:
    """A list, a line of code or talk about errors is no pasted block."""
    assert memory.recall_conversation(None, text).degraded == ()


@pytest.mark.promise("recall.pasted")
def test_many_words_around_a_block_are_all_heard(memory: Memory) -> None:
    """In a message of a page what stands between the first and the last words counts, too."""
    about = "\n\n".join(f"Nothing about number {n} is of any interest." for n in range(40))
    text = f"Hello.\n\n{about}\n\nMy sister's cello?\n\n{about[:600]}\n\n{CODE[:700]}```\nBye."
    assert 1_100 < len(text) < 4_000
    found = memory.recall_conversation(None, text, top_k=3)
    assert any("cello" in hit.text for hit in found)
    assert {one.part for one in found.degraded} == {"query"}


@pytest.mark.promise("recall.pasted")
def test_a_block_alone_is_still_a_question(memory: Memory) -> None:
    """A trace without a word beside it is asked by what identifies it, code by its ends."""
    assert memory.recall_conversation(None, PYTHON, top_k=1)[0].text == SHIPPING
    assert memory.recall_conversation(None, CODE * 30, top_k=3).hits


@pytest.mark.promise("recall.pasted")
def test_a_focus_begins_with_what_identifies_a_trace(tmp_path: Path) -> None:
    """In a project a long trace leads to the user's own file, wherever in it that stands."""
    root = tmp_path / "shop"
    root.mkdir()
    for name in ("orders", "basket", "prices"):
        (root / f"{name}.py").write_text(f"def {name}_total(run):\n    return run\n")
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        memory.index_project(root, name="shop")
        text = f"{PYTHON}\n{'x = receive(send)' * 400}\nwhat fails?"
        assert memory.recall_context(text).primary_targets[0].path == "orders.py"
