"""The options of a command as a table, from which typer builds it and `read_command` reads it.

Importing typer and building a program takes 0.1 s, too long for a question, for the start of an MCP
server and for a client's hook. Reading gives up unless every word is plainly valid: then typer
reads the words by the same table, for help or to report an error.

As strings, the annotations of the named tuple would be compiled again.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class Option(NamedTuple):
    """An option of a command, or with `is_argument` a text that it requires."""

    parameter: str
    help: str
    kind: type = str
    """Its type: str, int, float, or bool for a flag."""
    default: Any = None
    names: tuple[str, ...] = ()
    """As they are typed; by default the parameter's name after two dashes."""
    metavar: str | None = None
    least: float | None = None
    most: float | None = None
    is_repeated: bool = False
    """Whether it may be given several times, for a list."""
    is_argument: bool = False

    def typed_names(self) -> tuple[str, ...]:
        """Its names on the command line."""
        return self.names or (f"--{self.parameter.replace('_', '-')}",)

    def value(self, text: str) -> Any:
        """The value that a text means; None unless it is plainly valid."""
        if self.kind is str:
            return text
        digits = text if self.kind is int else text.replace(".", "", 1)
        if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
            return None
        number = self.kind(text)
        is_within = (self.least is None or number >= self.least) and (
            self.most is None or number <= self.most
        )
        return number if is_within else None


HOME: Final = Option(
    "home",
    "The home of the memory (ANAPHORA_HOME; otherwise the user's data folder).",
    metavar="PATH",
)
NAMESPACE: Final = Option("namespace", "The namespace to work in.", default="default")
CONVERSATIONS: Final = Option(
    "conversations",
    "Thread files elsewhere (ANAPHORA_CONVERSATIONS_DIR).",
    names=("--conversations-dir",),
    metavar="PATH",
)
LEADING: Final = (HOME, NAMESPACE, CONVERSATIONS)
"""The options before every command: which memory it works on."""


def take_options(
    words: Sequence[str], options: Sequence[Option], values: dict[str, Any]
) -> list[str]:
    """Put options that the words begin with into `values`; return the other words."""
    named = {
        name: option
        for option in options
        if not option.is_argument
        for name in option.typed_names()
    }
    remaining = list(words)
    while remaining:
        name, equals_sign, text = remaining[0].partition("=")
        option = named.get(name)
        if option is None or (equals_sign and not name.startswith("--")):
            break
        texts = [text] if equals_sign else remaining[1:2]
        value: Any = None
        if option.kind is bool:
            value = None if equals_sign else True
        elif texts:
            value = option.value(texts[0])
        if value is None:
            break
        if option.is_repeated:
            value = [*values.get(option.parameter, ()), value]
        values[option.parameter] = value
        del remaining[: 1 if equals_sign or option.kind is bool else 2]
    return remaining


def read_command(words: Sequence[str], options: Sequence[Option]) -> dict[str, Any] | None:
    """The values of a command by parameter; None if typer has to read the words."""
    values: dict[str, Any] = {}
    remaining = take_options(words, options, values)
    for option in options:
        if option.is_argument:
            if not remaining or remaining[0].startswith("-"):
                return None
            values[option.parameter] = remaining[0]
            remaining = take_options(remaining[1:], options, values)
    defaults = {option.parameter: option.default for option in options}
    return None if remaining else defaults | values
