"""`anaphora doctor`: what is wrong with a home or a client, and the command that mends it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from anaphora.container.feature import load, registered
from anaphora.ingest.secrets.masking import mask
from anaphora.surfaces.cli.grammar import NAMESPACE
from anaphora.surfaces.cli.options import Json
from anaphora.surfaces.cli.output import PARTS, console, emit, styled
from anaphora.surfaces.cli.progress import READ, long_work
from anaphora.surfaces.cli.where import Where, home_of, open_memory
from anaphora.surfaces.cli.words import command_line, program_words
from anaphora.text.display import one_line
from anaphora.values.conversations import Check


@dataclass(frozen=True, slots=True)
class Finding:
    """A check and, if it failed, the command that repairs it."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


def doctor(
    context: typer.Context,
    repair: Annotated[bool, typer.Option("--repair", help="Repair what can be repaired.")] = False,
    as_json: Json = False,
) -> None:
    """Check stored data, index, model, database and the coding agents that are set up.

    Each agent's own command stores a sentence and recalls it. Exit code 1 if something is wrong;
    the first failure is repeated at the end, with the command that repairs it.
    """
    with long_work("Checking", kept=READ, quiet=as_json) as progress:
        # What is installed can be checked before there is a memory; then "home" says so.
        is_early = context.obj.namespace == NAMESPACE.default and not home_of(context.obj).is_begun
        with open_memory(context, begins=is_early) as memory:
            home = memory.home
            checks = memory.doctor(repair=repair, progress=progress)
        command = _Command(context.obj, home, repaired=repair)
        findings = [command.finding(check) for check in checks]
        findings += [
            Finding(*finding)
            for feature in registered()
            if feature.cli.checks
            for finding in load(feature.cli.checks)(command.program)
        ]
    findings = mask(findings)
    first_problem = next((finding for finding in findings if not finding.ok), None)
    if as_json:
        emit({"ok": first_problem is None, "checks": findings, "first": first_problem})
    else:
        terminal = console()
        for finding in findings:
            line = Text("  ok  ", "green") if finding.ok else Text(" BAD  ", "bold red")
            detail = one_line(finding.detail, None)
            name = PARTS.get(finding.name, finding.name)
            terminal.print(line.append(f"{name:<13} ", "bold").append(detail, "none"))
            if not finding.ok:
                terminal.print(styled(f"      to repair it: {finding.remedy}", "yellow"))
        end = f"Nothing is wrong: {len(findings)} checks passed."
        if first_problem is not None:
            end = f"first failure: {first_problem.name}; run: {first_problem.remedy}"
        terminal.print(styled(end, "bold"))
    if first_problem is not None:
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True)
class _Command:
    """Builds the commands that repair what a check of this home found."""

    where: Where
    home: Path
    repaired: bool

    @property
    def program(self) -> list[str]:
        """The words that start this Anaphora."""
        return program_words()

    def finding(self, check: Check) -> Finding:
        """The check, with the command that repairs it if it failed."""
        if check.ok:
            return Finding(check.name, True, check.detail)
        name = check.name.partition(".")[0]
        remedies = (load(f.cli.remedies) for f in registered() if f.cli.remedies)
        remedy = next((r[name] for r in (_REMEDIES, *remedies) if name in r), _repair)
        return Finding(check.name, False, check.detail, remedy(self, check.detail))

    def of_home(self, *words: str, home: Path | None = None) -> str:
        """A command of Anaphora on this home, or on another one."""
        options = ["--home", str(home or self.home)]
        if self.where.conversations is not None and home is None:
            options += ["--conversations-dir", str(self.where.conversations.absolute())]
        return command_line([*self.program, *options, *words])


def _repair(command: _Command, detail: str) -> str:
    # A failure that survives a repair is not in derived data: only a backup can restore it.
    if command.repaired:
        return _restore(command, detail)
    namespace = command.where.namespace
    words = [] if namespace == "default" else ["--namespace", namespace]
    return command.of_home(*words, "doctor", "--repair")


def _restore(command: _Command, detail: str) -> str:
    new_home = command.home.with_name(f"{command.home.name}-restored")
    return command.of_home("restore", "YOUR.backup", home=new_home)


def _move(command: _Command, detail: str) -> str:
    backup = str(Path.home() / "anaphora.backup")
    new_home = Path.home() / "anaphora-local"
    restore = command.of_home("restore", backup, home=new_home)
    return f"{command.of_home('backup', backup)} && {restore}"


def _allow_writing(command: _Command, detail: str) -> str:
    if "Permission" in detail:
        return command_line(["chmod", "-R", "u+rwX", str(command.home)])
    # A full or read-only disk: the index can be rebuilt from what remains.
    return command_line(["df", "-h", str(command.home)])


def _unseal(command: _Command, detail: str) -> str:
    if "not one of our files" in detail:
        return command_line(["mv", detail.partition(" is not one")[0], str(Path.home())])
    return command.of_home("key", "import", "YOUR.key")


_REMEDIES: Final[Mapping[str, Callable[[_Command, str], str]]] = {
    "home": _allow_writing,
    "file system": _move,
    "sealing": _unseal,
    "truth": _restore,
    "embedder": lambda command, _: command.of_home("reindex", "--embedder", "minilm"),
    "models": lambda *_: (
        "unset ANAPHORA_MODEL ANAPHORA_MODEL_URL ANAPHORA_SUB_MODEL ANAPHORA_SUB_MODEL_URL"
    ),
    "sandbox": lambda *_: "sudo apt-get install bubblewrap",
}
"""By the name of a check; every other one can be repaired in place, from the stored data."""
