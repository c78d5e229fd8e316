"""Commands that take a text which may begin with a dash: "-5 degrees", "--port of the server".

No option name contains a space, so such a word is a text. For one without a space the error
message says how to write it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, cast

import typer
from typer.core import TyperCommand

_AFTER: Final = "; write a text that begins with a dash after `--`"


class TextCommand(TyperCommand):
    """A command with arguments that may begin with a dash."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line, treating texts with a dash as texts."""
        options_with_argument = {
            name
            for param in self.params
            if param.param_type_name == "option" and not getattr(param, "is_flag", False)
            for name in param.opts
        }
        try:
            return super().parse_args(ctx, texts_last(args, options_with_argument))
        except Exception as error:
            takes_words = any(param.param_type_name == "argument" for param in self.params)
            # Only the error for an unknown option has this attribute.
            if takes_words and hasattr(error, "possibilities"):
                cast(Any, error).message += _AFTER
            raise


def texts_last(words: Sequence[str], valued: Collection[str]) -> list[str]:
    """The words, with texts that must not be parsed as options moved behind "--", in order.

    `valued` are the options that take the next word as their value.
    """
    unread = list(words)
    leading_words: list[str] = []
    texts: list[str] = []
    while unread and unread[0] != "--":
        word = unread.pop(0)
        is_text = word.startswith("-") and len(word.partition("=")[0].split()) > 1
        # A word that follows such a text must stay behind it in the order of the arguments.
        if is_text or (texts and not word.startswith("-")):
            texts.append(word)
            continue
        leading_words.append(word)
        if word in valued and unread:
            leading_words.append(unread.pop(0))
    return [*leading_words, "--", *texts, *unread[1:]] if texts else list(words)


def let_texts_begin_with_dashes(program: typer.Typer) -> None:
    """Accept such texts in all commands of a program."""
    for command in program.registered_commands:
        command.cls = TextCommand
    for group in program.registered_groups:
        if group.typer_instance is not None:
            let_texts_begin_with_dashes(group.typer_instance)
