"""The reference is made out of the code, and nothing that is read from outside is missing in it."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from tests.docs.running import ROOT

from anaphora.core import config, resident
from anaphora.core.incidents import TRACEBACK


@pytest.mark.promise("docs.reference")
def test_the_reference_is_what_the_code_says() -> None:
    """Made again, no page of the reference changes."""
    done = subprocess.run(
        [sys.executable, "tools/reference.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.promise("docs.reference")
def test_every_variable_is_described() -> None:
    """What the settings and the resident process read from the environment is what it describes."""
    source = (ROOT / "src" / "anaphora" / "core" / "config.py").read_text("utf-8")
    code = source[source.index("def load_settings") :]
    read = set(re.findall(r'"((?:ANAPHORA|OPENAI|ANTHROPIC|GOOGLE|GEMINI)_\w+)"', code))
    read |= set(re.findall(r'"(CLAUDE_\w+|CODEX_\w+)"', code)) | set(config.CONVERSATIONS_VARIABLES)
    read |= {name for names in config.DECAY_VARIABLES.values() for name in names}
    read |= {resident.VARIABLE, TRACEBACK}
    assert read == {one.name for one in config.VARIABLES}
