"""Code by symbol, in each language: what is found in small samples of real shapes."""

from __future__ import annotations

from pathlib import Path

import pytest

from anaphora.ingest.sections import ParsedFile, parse

SAMPLES = Path(__file__).parent / "fixtures_sections"


def sample(name: str) -> ParsedFile:
    return parse(name, (SAMPLES / f"{name}.txt").read_text(encoding="utf-8"))


def section_of(parsed: ParsedFile, symbol: str) -> str:
    return next(each.text for each in parsed.sections if each.symbol == symbol)


SYMBOLS = {
    "sample.py": ("Payment:class Payment.doubled:method Payment.Kind.name:method outer:function"),
    "sample.js": (
        "add:function subtract:function Ledger.handle:method Ledger.close:method open:function"
    ),
    "sample.tsx": (
        "Row:interface Level:enum Id:type Table.find:method Tools.clean:function View:function"
    ),
    "sample.go": ("Payment:type Sender:type Payment.Send:method Stack.Push:method Limit:constant"),
    "sample.rs": ("Payment:struct Send:trait Payment.send:method Stack.push:method twice:macro"),
    "sample.java": (
        "Payment:class Payment.send:method Payment.Kind:enum Sender:interface Point:class"
    ),
    "sample.c": (
        "payment:struct stack_t:type callback:function send:function names:function LIMIT:macro"
    ),
    "sample.cpp": (
        "money.detail.Stack:class money.detail.Stack.top:method money.Kind:enum main:function"
    ),
    "sample.rb": ("Money:module Money.Payment:class Money.Payment.open:method helper:function"),
    "sample.php": ("Payment:class Payment.send:method Boxed:interface Loggable:trait Kind:enum"),
    "sample.cs": (
        "App.Ledger.Payment.Send:method App.Ledger.ISender:interface App.Ledger.Pair:struct"
    ),
    "sample.sh": "say:function build:function LIMIT:constant",
}
IMPORTS = {
    "sample.py": ("__future__ os sys collections.abc  core.store rates json wire"),
    "sample.js": ("./lib/a.js pkg ./side-effect ./three ./all fs node:path ./lazy.js"),
    "sample.tsx": "react ./types fs",
    "sample.go": "fmt strings example.com/money/v2 math",
    "sample.rs": (
        "std::collections crate::money::Rate super::wire self::kinds serde self::kinds "
        "self::wire super"
    ),
    "sample.java": ("java.util.List java.util.concurrent org.junit.Assert.assertEquals"),
    "sample.c": "stdio.h money/rate.h",
    "sample.cpp": "vector ledger.hpp",
    "sample.rb": "json ./ledger/rate ../wire tasks.rb",
    "sample.php": r"App\Money\Rate App\Wire App\twice ./bootstrap.php helpers.php",
    "sample.cs": ("System System.Collections.Generic System.Math App.Money.Rate"),
    "sample.sh": "./lib/common.sh $HOME/.profile",
}
COMMENTED = {
    "sample.py": ("Payment", "# How a payment is kept."),
    "sample.js": ("add", "/**\n * Adds two numbers."),
    "sample.tsx": ("Row", "/** What a row holds. */"),
    "sample.go": ("Payment.Send", "// Send sends the payment.\n//\n// It may fail."),
    "sample.rs": ("Payment", "/// One payment.\n#[derive(Debug, Clone)]"),
    "sample.java": ("Payment.send", "    /** Sends it. */\n    @Override"),
    "sample.c": ("payment", "/* One payment. */"),
    "sample.cpp": ("money.detail.Stack.push", "    // Pushes one."),
    "sample.rb": ("Money.Payment", "  # One payment."),
    "sample.php": ("Payment", "/**\n * One payment.\n */\n#[Entity]"),
    "sample.sh": ("say", "# Says something."),
}


@pytest.mark.promise("sections.symbols")
@pytest.mark.parametrize("name", SYMBOLS)
def test_symbols(name: str) -> None:
    """The functions, methods and types of a language are found, with what holds them."""
    found = {f"{each.qualified}:{each.kind}" for each in sample(name).symbols}
    assert set(SYMBOLS[name].split()) <= found


@pytest.mark.promise("sections.symbols")
@pytest.mark.parametrize("name", IMPORTS)
def test_imports(name: str) -> None:
    """What a file imports is there as it is written, in the order of its lines."""
    assert [each.module for each in sample(name).imports] == IMPORTS[name].split(" ")


@pytest.mark.parametrize("name", COMMENTED)
def test_comments_above(name: str) -> None:
    """The comment, decorator or attribute right above a symbol is in its section."""
    symbol, comment = COMMENTED[name]
    assert comment in section_of(sample(name), symbol)


def test_python_imports_in_full() -> None:
    """An import of Python has its dots, its names without their aliases, and its line."""
    found = [
        (each.level, each.module, each.names, each.line) for each in sample("sample.py").imports
    ]
    assert (1, "", ("money",), 8) in found
    assert (2, "core.store", ("Store", "open_store"), 9) in found
    assert (1, "rates", ("*",), 10) in found
    assert (1, "wire", ("post",), 57) in found


def test_methods_stand_under_their_class() -> None:
    """A method of a long class has a section of its own, with the class as its heading."""
    method = next(each for each in sample("sample.py").sections if each.symbol == "Payment.send")
    assert method.heading == ("Payment",)
    assert method.text.startswith("    async def send(")


def test_a_small_class_is_whole() -> None:
    """A short class is one section with all its methods, which are still symbols."""
    parsed = parse("a.py", "class A:\n    def b(self): ...\n\n    def c(self): ...\n")
    assert [each.symbol for each in parsed.sections] == ["A"]
    assert [each.qualified for each in parsed.symbols] == ["A", "A.b", "A.c"]


def test_top_of_a_file_is_called_what_it_says() -> None:
    """The lines before the first symbol are titled by the file's own first words."""
    assert sample("sample.py").sections[0].title == "Keeps a ledger of payments"
    assert sample("sample.go").sections[0].title == "Package ledger keeps payments"


def test_namespaces_make_no_crumbs() -> None:
    """The line of a namespace goes with the first of its parts."""
    first = next(each for each in sample("sample.cpp").sections if each.symbol)
    assert first.symbol == "money.detail.Stack"
    assert first.text.startswith("namespace money {")


def test_a_language_that_has_no_grammar() -> None:
    """Code in any other language is one section, or its lines in parts."""
    parsed = parse("a.lua", "local a = 1\nprint(a)\n")
    assert [(each.kind, each.title) for each in parsed.sections] == [("file", "a.lua")]


def test_shebang_tells_the_language() -> None:
    """A script without an ending is read in the language of its first line."""
    parsed = parse("bin/run", "#!/usr/bin/env -S python3 -u\ndef main(): ...\n")
    assert parsed.language == "python"
    assert [each.name for each in parsed.symbols] == ["main"]
