"""The demonstration behind `make demo`: import a conversation, recall from it, show why.

In: a file (an export of any format that `anaphora conversation import` reads) and, optionally, a
question. It runs the same commands that a user would type, in a home of its own under `.demo/`.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".demo"
SHIPPED = ROOT / "examples" / "conversation.json"
QUESTIONS = (
    "why did we move the queue away from redis?",
    "what port does the staging database listen on?",
    "when is the pilot with Harbour Lane?",
)


def main(file: str, asked: str) -> int:
    """Import `file`, then recall for `asked` or, without one, for questions that suit the file."""
    if not Path(file).exists():
        print(f"no such file: {file}", file=sys.stderr)
        return 2
    done = _run("conversation", "import", file)
    if done not in (0, 5):  # 5: imported, with something to report
        return done
    _run("conversation", "list", "--limit", "5")
    for question in [asked] if asked else _questions(Path(file)):
        status = _run("recall", question, "--top-k", "3", "--why")
        if status:
            return status
    _tell_what_next()
    return 0


def _tell_what_next() -> None:
    """Three commands that work as they stand, in this folder."""
    program = _command()[0]
    here = Path.cwd()
    start = str(Path(program).relative_to(here)) if Path(program).is_relative_to(here) else program
    home = f"--home {shlex.quote(HOME.name)}"
    print(
        f"""
What was imported stays in {HOME.name}/. Next, type:

  {start} {home} recall "which port is staging on now?"
  {start} {home} remember "The ferry leaves at nine." && {start} {home} recall "when is the ferry?"
  {start} setup claude-code --dry-run
"""
    )


def _questions(file: Path) -> tuple[str, ...]:
    if file.resolve() == SHIPPED:
        return QUESTIONS
    # Somebody's own export: ask again what they once asked, as the title of a chat has it.
    listed = subprocess.run(
        [*_command("conversation", "list", "--limit", "2"), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(item["title"] for item in json.loads(listed.stdout))


def _command(*words: str) -> list[str]:
    program = Path(sys.executable).parent / "anaphora"
    return [str(program), "--home", str(HOME), *words]


def _run(*words: str) -> int:
    shown = shlex.join(["anaphora", "--home", HOME.name, *words])
    print(f"\n$ {shown}", flush=True)
    return subprocess.run(_command(*words), check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""))
