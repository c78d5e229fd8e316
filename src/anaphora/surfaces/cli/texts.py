"""Commands that take a text, which may begin with a dash: "-5 degrees", "--port of the server".

No option has a space in its name, so such a word is a text. For one without a space the message
says how to write it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, cast

import typer
from typer.core import TyperCommand

_AFTER: Final = "; what begins with a dash and is no option is written after `--`"


class TextCommand(TyperCommand):
    """A command whose arguments may begin with a dash."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command, texts with a dash as texts."""
        valued = {
            name
            for param in self.params
            if param.param_type_name == "option" and not getattr(param, "is_flag", False)
            for name in param.opts
        }
        try:
            return super().parse_args(ctx, texts_last(args, valued))
        except Exception as error:
            takes_words = any(param.param_type_name == "argument" for param in self.params)
            # Of all that can be wrong with words only an unknown option has these.
            if takes_words and hasattr(error, "possibilities"):
                cast(Any, error).message += _AFTER
            raise


def texts_last(words: Sequence[str], valued: Collection[str]) -> list[str]:
    """The words with what must not be read as options behind "--", in its order.

    `valued` are the options that take the next word, whatever that is.
    """
    left = list(words)
    before: list[str] = []
    texts: list[str] = []
    while left and left[0] != "--":
        word = left.pop(0)
        is_text = word.startswith("-") and len(word.partition("=")[0].split()) > 1
        # A word after such a text is behind it in the order of the arguments, too.
        if is_text or (texts and not word.startswith("-")):
            texts.append(word)
            continue
        before.append(word)
        if word in valued and left:
            before.append(left.pop(0))
    return [*before, "--", *texts, *left[1:]] if texts else list(words)


def let_texts_begin_with_dashes(program: typer.Typer) -> None:
    """Let all commands of a program take such texts."""
    for command in program.registered_commands:
        command.cls = TextCommand
    for group in program.registered_groups:
        if group.typer_instance is not None:
            let_texts_begin_with_dashes(group.typer_instance)
