"""The command that installs what is missing fits the environment, and what it was installed from.

Environments are folders with the files that uv, pipx and venv leave in them; `tools/` and the
packages' own programs try the commands where there is a network.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anaphora.client.problems import error_of
from anaphora.errors import MissingExtra
from anaphora.installing import Installation, install_command
from anaphora.surfaces.cli.words import command_line, program_words
from anaphora.surfaces.rest.problems import problem_of

pytestmark = [pytest.mark.promise("package.advice")]

LINES = (
    "numpy>=2.0",
    "lancedb>=0.34; (sys_platform != 'darwin' or platform_machine == 'arm64') and extra == 'large'",
    "fastapi>=0.115.4; extra == 'server'",
    'uvicorn>=0.32 ; extra == "server"',
)
INDEX: Mapping[str, Any] = {}


def installed(folder: Path, direct_url: Mapping[str, Any] = INDEX, **more: Any) -> Installation:
    """A virtual environment with pip in a folder."""
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    (folder / "pyvenv.cfg").touch()
    plain = Installation(folder, folder / "bin" / "python", direct_url, LINES, True, True)
    return replace(plain, **more)


def checkout(folder: Path, *, editable: bool = False) -> Mapping[str, Any]:
    """What an installer records of a folder, which is there afterwards."""
    folder.mkdir(parents=True)
    return {"url": folder.as_uri(), "dir_info": {"editable": True} if editable else {}}


def test_a_venv_with_pip(tmp_path: Path) -> None:
    """Its own pip, by the interpreter's path: another `pip` may stand first on the PATH."""
    env = installed(tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    assert env.command("server") == f"{python} -m pip install 'anaphora[server]'"
    assert env.command(packages=["agno"]) == f"{python} -m pip install agno"


def test_a_venv_without_pip(tmp_path: Path) -> None:
    """uv installs into it; without uv Python's own pip is brought in first."""
    env = installed(tmp_path / "venv", has_pip=False)
    python = env.python
    by_uv = f"uv pip install --python {python} 'anaphora[server]'"
    assert env.command("server") == by_uv
    without_uv = replace(env, has_uv=False)
    by_pip = f"{python} -m ensurepip && {python} -m pip install 'anaphora[server]'"
    assert without_uv.command("server") == by_pip
    (env.prefix / "pyvenv.cfg").write_text("home = /usr/bin\nuv = 0.9.1\n")
    assert without_uv.command("server") == by_uv


def test_a_python_of_the_system(tmp_path: Path) -> None:
    """Where the system keeps pip out, pip is told that this is meant."""
    env = installed(tmp_path / "usr", managed=True)
    expected = f"{env.python} -m pip install --break-system-packages 'anaphora[server]'"
    assert env.command("server") == expected


def test_the_source_is_a_checkout(tmp_path: Path) -> None:
    """It is installed from there again, editable as it was, and its path quoted."""
    folder = tmp_path / "my checkout"
    env = installed(tmp_path / "venv", checkout(folder))
    assert env.command("server") == f"{env.python} -m pip install '{folder}[server]'"
    changed = replace(env, direct_url={**env.direct_url, "dir_info": {"editable": True}})
    expected = f"{env.python} -m pip install --editable '{folder}[server]'"
    assert changed.command("server") == expected


def test_the_source_is_a_wheel_or_an_address(tmp_path: Path) -> None:
    """A file of a local disk, an archive of a server, a commit of a repository."""
    wheel = tmp_path / "anaphora-0.1.0-py3-none-any.whl"
    wheel.touch()
    env = installed(tmp_path / "venv", {"url": wheel.as_uri(), "archive_info": {}})
    assert env.requirement("server") == f"{wheel}[server]"
    address = "https://example.org/anaphora.tar.gz"
    env = replace(env, direct_url={"url": address, "archive_info": {}})
    assert env.requirement("server") == f"anaphora[server] @ {address}"
    vcs = {"vcs": "git", "commit_id": "c0ffee"}
    direct = {"url": "https://example.org/a.git", "vcs_info": vcs, "subdirectory": "py"}
    env = replace(env, direct_url=direct)
    said = env.requirement("projects", "server")
    assert (
        said == "anaphora[projects,server] @ git+https://example.org/a.git@c0ffee#subdirectory=py"
    )


def test_the_source_is_gone(tmp_path: Path) -> None:
    """What the extra needs is named instead, with what else a marker asks for."""
    env = installed(tmp_path / "venv", {"url": (tmp_path / "x.whl").as_uri(), "archive_info": {}})
    pip = f"{env.python} -m pip install"
    assert env.command("server") == f"{pip} 'fastapi>=0.115.4' 'uvicorn>=0.32'"
    marker = 'sys_platform != "darwin" or platform_machine == "arm64"'.replace('"', "'")
    words = replace(env, windows=True).command("large")
    assert words.endswith(f'"lancedb>=0.34; ({marker})"')
    (env.prefix / "uv-receipt.toml").write_text(RECEIPT)
    assert env.command("server").startswith(f"uv pip install --python {env.python} 'fastapi")


RECEIPT = """
[tool]
requirements = [
    { name = "anaphora", extras = ["projects"] },
    { name = "agno", specifier = ">=2.0" },
    { name = "mine", extras = ["fast"], editable = "/src/mine" },
    { name = "theirs", git = "https://example.org/theirs?rev=v1" },
]
python = "3.12"
"""


def test_a_tool_of_uv(tmp_path: Path) -> None:
    """The tool is installed with all that it was installed with: uv would remove the rest."""
    env = installed(tmp_path / "tools" / "anaphora", checkout(tmp_path / "src"), has_pip=False)
    (env.prefix / "uv-receipt.toml").write_text(RECEIPT)
    beside = (
        "uv tool install --python 3.12 --with 'agno>=2.0' --with-editable '/src/mine[fast]' "
        "--with 'theirs @ git+https://example.org/theirs@v1'"
    )
    assert env.command("server") == f"{beside} '{tmp_path}/src[projects,server]'"
    assert env.command("projects") == f"{beside} '{tmp_path}/src[projects]'"
    framework = env.command(packages=["llama-index-core"])
    assert framework == f"{beside} --with llama-index-core '{tmp_path}/src[projects]'"


def test_an_environment_of_pipx(tmp_path: Path) -> None:
    """pipx has an installer for it, with or without pip inside; its name may have a suffix."""
    env = installed(tmp_path / "venvs" / "anaphora-2", has_pip=False)
    (env.prefix / "pipx_metadata.json").write_text("{}")
    assert env.command("server") == "pipx runpip anaphora-2 install 'anaphora[server]'"


def test_run_out_of_a_cache(tmp_path: Path) -> None:
    """Nothing can be added to a cache: the program is run once more, with what is missing."""
    (tmp_path / "uv").mkdir()
    (tmp_path / "uv" / "CACHEDIR.TAG").touch()
    env = installed(tmp_path / "uv" / "archive-v0" / "x")
    said = env.command("server")
    assert said.startswith("uvx --from 'anaphora[")
    assert said.endswith("server]' anaphora")
    env = installed(tmp_path / "share" / "pipx" / ".cache" / "x")
    assert env.command("server").startswith("pipx run --spec 'anaphora[")


def test_quotes_of_windows(tmp_path: Path) -> None:
    """A command shell there knows no single quotes."""
    env = installed(tmp_path / "my venv", checkout(tmp_path / "my src"), windows=True)
    python = f'"{env.python}"'
    assert env.command("server") == f'{python} -m pip install "{tmp_path}/my src[server]"'


def test_the_error_names_the_command_of_this_environment() -> None:
    """For an extra, and for a framework without one."""
    error = MissingExtra("client", "httpx")
    assert error.command == install_command("client")
    assert str(error) == f"httpx is not installed (extra client); run: {error.command}"
    assert "client]" in error.command
    framework = MissingExtra("", "agno")
    assert str(framework) == f"agno is not installed; run: {framework.command}"
    assert framework.command.split()[-1] == "agno" or "--with agno" in framework.command


def test_a_server_says_what_it_lacks_and_not_where_it_is() -> None:
    """Over HTTP the extra is named; the command, with folders of the server's disk, is not."""
    error = MissingExtra("deep", "pydantic-monty-client")
    answer = problem_of(error)
    problem = json.loads(bytes(answer.body))
    assert problem["detail"] == "pydantic-monty-client is not installed (extra deep)"
    assert problem["data"] == {"extra": "deep", "needs": "pydantic-monty-client"}
    assert sys.prefix not in bytes(answer.body).decode()
    received = error_of("http://server", answer.status_code, problem)
    assert isinstance(received, MissingExtra)
    assert (str(received), received.command) == (problem["detail"], "")


def test_without_an_installed_distribution(tmp_path: Path) -> None:
    """Out of a folder on the search path there is still a command."""
    code = (
        "import sys, importlib.metadata as m\n"
        "def distribution(name): raise m.PackageNotFoundError(name)\n"
        "m.distribution = distribution\n"
        "from anaphora.installing import install_command\n"
        "print(install_command('server'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert "'anaphora[server]'" in done.stdout or '"anaphora[server]"' in done.stdout


def test_the_command_of_a_hook_is_read_by_every_shell_of_windows() -> None:
    """Slashes instead of back-slashes; quotes only around what has a space."""
    plain = ["C:\\Users\\me\\anaphora.exe", "hook", "claude-code"]
    assert command_line(plain, windows=True) == "C:/Users/me/anaphora.exe hook claude-code"
    spaced = ["C:\\Program Files\\anaphora.exe", "hook", "codex"]
    assert command_line(spaced, windows=True) == '"C:/Program Files/anaphora.exe" hook codex'
    assert command_line(["/o p/anaphora", "hook"], windows=False) == "'/o p/anaphora' hook"


def test_a_client_starts_what_will_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script beside the interpreter; out of a cache `uvx`, or the command that installs."""
    scripts = tmp_path / "tool" / "Scripts"
    scripts.mkdir(parents=True)
    (scripts / "anaphora.exe").touch()
    assert program_words(scripts / "python.exe", windows=True) == [str(scripts / "anaphora.exe")]
    cached = tmp_path / "cache" / "archive-v0" / "x" / "bin"
    cached.mkdir(parents=True)
    (cached / "anaphora").touch()
    for tagged in (tmp_path / "cache", scripts.parent):
        (tagged / "CACHEDIR.TAG").touch()
    (scripts.parent / "pyvenv.cfg").touch()
    assert program_words(scripts / "python.exe", windows=True) == [str(scripts / "anaphora.exe")]
    tools = tmp_path / "tools"
    tools.mkdir()
    uvx = tools / "uvx"
    uvx.touch()
    uvx.chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    found = program_words(cached / "python", windows=False)
    assert found[:2] == [str(uvx), "--from"]
    assert found[2] == Installation.current().requirement()
    assert found[3:] == ["anaphora"]
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="pipx install "):
        program_words(cached / "python", windows=False)
