"""The package itself: that the installed one is tried, its model, its command line, its doctor."""

from __future__ import annotations

import shutil
from pathlib import Path

from tools.gate.environments import Environment
from tools.gate.report import Report, must

FACT = "Staging's database listens on port 5433."


def check_package(environment: Environment, source: Path, report: Report) -> None:
    """What a user of the command line does first."""
    user = environment.user("package")
    with report.check("the installed package is the one that is tried"):
        where = user.run("python", "-c", "import anaphora; print(anaphora.__file__)").stdout
        must(where.startswith(str(environment.bin.parent)), f"imported from {where}")
        must(user.run("anaphora", "--version").stdout.startswith("anaphora "), "no version")
    with report.check("the model is inside: a memory is found by meaning"):
        user.run("anaphora", "remember", FACT)
        user.run("anaphora", "remember", "The cat sleeps on the warm windowsill.")
        hits = user.json("anaphora", "recall", "a pet taking a nap", "--json")["hits"]
        must("cat" in hits[0]["text"], f"the first hit is {hits[0]['text']!r}")
    with report.check("a conversation is imported and recalled"):
        shutil.copy(source / "examples" / "conversation.json", user.work / "chat.json")
        user.run("anaphora", "conversation", "import", "chat.json")
        question = "why did we move the queue away from redis?"
        hits = user.json("anaphora", "conversation", "recall", question, "--json")["hits"]
        must(any("lost" in hit["text"] for hit in hits), f"recalled {hits}")
    with report.check("wrong options are refused in words"):
        refused = user.run(
            "anaphora", "recall", "a pet", "--since", "the day of nonsense", expect=2
        )
        must("Traceback" not in refused.stderr, refused.stderr)
        must("since" in refused.stderr, f"it says {refused.stderr!r}")
    with report.check("doctor finds nothing wrong"):
        must(user.json("anaphora", "doctor", "--json"), "doctor says nothing")
    if not environment.has("mcp"):
        with report.check("`anaphora mcp --http` without the extra mcp names it"):
            refused = user.run("anaphora", "mcp", "--http", "127.0.0.1:0", expect=1)
            must("extra mcp" in refused.stderr, f"it says {refused.stderr!r}")
            must("Traceback" not in refused.stderr, refused.stderr)
