"""The role and the language of a file, by its path and the beginning of its text."""

from __future__ import annotations

import re
from typing import Final

from anaphora.language.word_lists import by_word, words
from anaphora.values.files import SourceRole

_BY_ENDING: Final = by_word(
    {
        "python": "py pyi pyw",
        "javascript": "js mjs cjs jsx",
        "typescript": "ts mts cts",
        "tsx": "tsx",
        "go": "go",
        "rust": "rs",
        "java": "java",
        "c": "c",
        "cpp": "cc cpp cxx c++ hh hpp hxx h++ ipp inl cu cuh ino",
        "ruby": "rb rake gemspec ru",
        "php": "php phtml php5",
        "csharp": "cs csx",
        "bash": "sh bash zsh ksh bats",
        "markdown": "md markdown mdx mdc mkd mdown",
        "rst": "rst",
        "json": "json jsonc json5 webmanifest code-workspace",
        "toml": "toml",
        "yaml": "yaml yml",
        "ini": "ini cfg conf properties editorconfig service desktop",
        "makefile": "mk mak",
        "env": "env",
        "html": "html htm xhtml vue svelte",
        "css": "css scss sass less",
        "xml": "xml xsd xsl svg csproj props targets",
        "sql": "sql",
        "kotlin": "kt kts",
        "swift": "swift",
        "scala": "scala sc",
        "lua": "lua",
        "perl": "pl pm",
        "r": "r",
        "haskell": "hs",
        "elixir": "ex exs",
        "powershell": "ps1 psm1",
        "notebook": "ipynb",
    }
)
_BY_NAME: Final = by_word(
    {
        "makefile": "makefile gnumakefile",
        "dockerfile": "dockerfile containerfile",
        "ruby": "gemfile rakefile vagrantfile podfile brewfile guardfile",
        "groovy": "jenkinsfile",
        "toml": "pipfile cargo.lock",
        "gomod": "go.mod",
        "ini": ".editorconfig .gitconfig .gitmodules .npmrc .flake8 .pylintrc .coveragerc",
        "bash": ".bashrc .bash_profile .profile .zshrc",
        "yaml": ".prettierrc .clang-format",
        "json": ".eslintrc .babelrc",
    }
)
_SHEBANG = re.compile(r"#![ \t]*(?:\S*/)?(?:env[ \t]+(?:-\S+[ \t]+)*(?:\w+=\S*[ \t]+)*)?([\w.+-]+)")
_PROGRAMS: Final = by_word(
    {
        "python": "python pypy uv",
        "javascript": "node nodejs bun",
        "typescript": "deno ts-node tsx",
        "ruby": "ruby",
        "php": "php",
        "bash": "sh bash dash zsh ksh ash bats",
        "perl": "perl",
        "makefile": "make",
    }
)
_CPP_HEADER = re.compile(
    r"^\s*(?:class\s+\w+|namespace\b|template\s*<|using\s+\w|public:|private:|protected:"
    r"|#\s*include\s*<(?:string|vector|map|memory|iostream|cstd\w+)>|extern\s+\"C\")",
    re.MULTILINE,
)


def language_of(path: str, head: str = "") -> str:
    """The language of a file ("python", "markdown", …), "text" if it is none that is known.

    `head` is the beginning of its text: it tells where the name does not (a shebang, a C++ header).
    """
    name = path.rsplit("/", 1)[-1].lower()
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name == ".env" or name.startswith(".env."):
        return "env"
    if name.startswith(("dockerfile.", "makefile.")):
        return name.partition(".")[0]
    stem, dot, ending = name.rpartition(".")
    if dot and ending == "h":
        return "cpp" if _CPP_HEADER.search(head) else "c"
    if dot and stem and ending in _BY_ENDING:
        return _BY_ENDING[ending]
    match = _SHEBANG.match(head)
    if match is None:
        return "text"
    program = match[1].lower()
    return _PROGRAMS.get(program) or _PROGRAMS.get(re.sub(r"[\d.]+$", "", program), "text")


_AGENT_FILES = words(
    "agents.md agent.md claude.md claude.local.md gemini.md codex.md copilot-instructions.md "
    "skill.md .cursorrules .windsurfrules .clinerules .roorules .mcp.json .aider.conf.yml "
    "llms.txt llms-full.txt"
)
_AGENT_FOLDERS = words(
    ".claude .codex .cursor .gemini .windsurf .clinerules .roo .kiro .agents .aider .continue "
    ".opencode .junie"
)
_PACKAGE_FILES = words(
    "pyproject.toml setup.py setup.cfg pipfile environment.yml environment.yaml package.json "
    "pnpm-workspace.yaml lerna.json deno.json jsr.json bower.json go.mod go.work cargo.toml "
    "gemfile "
    "composer.json pom.xml build.gradle build.gradle.kts settings.gradle settings.gradle.kts "
    "directory.packages.props packages.config build.sbt mix.exs package.swift podfile "
    "cmakelists.txt meson.build conanfile.txt conanfile.py vcpkg.json manifest.in"
)
_REQUIREMENTS = re.compile(r"(?:requirements|constraints)[\w.-]*\.(?:txt|in)$")
_PACKAGE_ENDINGS = (".gemspec", ".csproj", ".fsproj", ".vbproj", ".sln", ".nuspec", ".cabal")
_TOOLING_FILES = words(
    "tox.ini pytest.ini mypy.ini ruff.toml .ruff.toml noxfile.py fabfile.py dodo.py tasks.py "
    "conftest.toml justfile taskfile.yml taskfile.yaml rakefile procfile vagrantfile jenkinsfile "
    "makefile gnumakefile dockerfile containerfile codecov.yml tsconfig.json jsconfig.json "
    "biome.json turbo.json nx.json renovate.json mkdocs.yml readthedocs.yml "
    "azure-pipelines.yml cloudbuild.yaml netlify.toml vercel.json fly.toml lefthook.yml "
    "cliff.toml rustfmt.toml clippy.toml deny.toml phpunit.xml phpstan.neon dangerfile"
)
_ROOT_ONLY = words("setup.py tasks.py dodo.py conanfile.py")
"""Names that mean something else in any other folder than the project's root."""
_TOOLING_NAME = re.compile(
    r"^(?:\.[\w.-]+|(?:docker-)?compose[\w.-]*\.ya?ml|dockerfile\..+|tsconfig\.[\w.-]+\.json"
    r"|makefile\..+|[\w-]+\.config\.[cm]?[jt]s|[\w.-]+\.mk|karma\.conf\.js|gulpfile\.[jt]s"
    r"|gruntfile\.js)$"
)
_TOOLING_FOLDERS = words(
    ".github .gitlab .circleci .buildkite .devcontainer .vscode .idea .husky .config .changeset "
    ".gitea .forgejo .woodpecker scripts script tools tooling ci hack devtools deploy infra "
    "terraform ansible k8s helm .ci .hooks hooks"
)
_TEST_FOLDERS = words(
    "tests test __tests__ spec specs testing testdata test_data __fixtures__ __mocks__ e2e "
    "integration_tests unit_tests testsuite cypress"
)
_TEST_NAME = re.compile(
    r"^(?:test_.*|.*_tests?|tests?|conftest|.*[.-](?:test|spec|cy|e2e)|.*_spec)$"
)
_CAMEL_TEST = re.compile(
    r"(?:^|[a-z0-9])(?:Test|Tests|TestCase|Spec|IT)\.(?:java|kt|cs|php|scala)$"
)
_PLAN_FOLDERS = words("plans plan rfcs rfc proposals roadmap roadmaps")
_PLAN_NAME = re.compile(r"^(?:.*[._-])?(?:plan|plans|todo|todos|roadmap|backlog|rfc)(?:[._-].*)?$")
_GENERATED_FOLDERS = words("generated __generated__ __snapshots__ gen .generated")
_VENDORED_FOLDERS = words("vendor vendored third_party third-party thirdparty _vendor")
_GENERATED_NAME = re.compile(
    r"(?:_pb2(?:_grpc)?\.pyi?|\.pb\.(?:go|cc|h|rs)|_generated\.\w+|\.generated\.\w+|\.g\.(?:cs|dart)"
    r"|\.designer\.cs|\.min\.(?:js|css)|\.snap|\.bundle\.js|-lock\.json|\.lock|zz_generated.*)$"
)
_GENERATED_HEAD = re.compile(
    r"@generated\b|code generated .{0,200}do not edit|(?:auto-?generated|automatically generated)"
    r"|generated by .{0,200}do not (?:edit|modify)|this file (?:is|was) generated",
    re.IGNORECASE,
)
_HEAD_LINES = 12
_DOC_FOLDERS = words("docs doc documentation adr adrs decisions wiki man")
_DOC_NAME = re.compile(
    r"^(?:readme|changelog|changes|history|news|contributing|authors|security|code_of_conduct"
    r"|upgrading|migrating|architecture|glossary|faq|support|governance|maintainers)(?:[._-].*)?$"
)
_DOC_LANGUAGES = frozenset({"markdown", "rst"})
_DOC_ENDINGS = (".txt", ".adoc", ".asciidoc", ".org", ".tex", ".textile", ".pod")
_DATA_LANGUAGES = words("json toml yaml ini env xml text")


def role_of(path: str, head: str = "") -> SourceRole:
    """The part a file has in a project: the first that fits, by its folders, its name, its words.

    `path` is relative to the project's root; `head` is the beginning of the text, where a
    generated file says that it is one.
    """
    *folders, name = path.lower().split("/")
    around = frozenset(folders)
    if name in _AGENT_FILES or around & _AGENT_FOLDERS:
        return "agent_config"
    begins = "\n".join(head.split("\n", _HEAD_LINES)[:_HEAD_LINES])
    is_of_others = around & (_GENERATED_FOLDERS | _VENDORED_FOLDERS)
    if is_of_others or _GENERATED_NAME.search(name) or _GENERATED_HEAD.search(begins):
        return "generated"
    is_package = name in _PACKAGE_FILES or name.endswith(_PACKAGE_ENDINGS)
    is_misplaced = bool(folders) and name in _ROOT_ONLY
    if not is_misplaced and (is_package or _REQUIREMENTS.search(name)):
        return "package_config"
    language = language_of(path, head)
    prose = language in _DOC_LANGUAGES or name.endswith(_DOC_ENDINGS)
    stem = name.partition(".")[0] if name.count(".") < 2 else name.rpartition(".")[0]
    is_named_as_test = _TEST_NAME.match(stem) or _CAMEL_TEST.search(path)
    if around & _TEST_FOLDERS or (is_named_as_test and not prose):
        return "test"
    if prose and (around & _PLAN_FOLDERS or _PLAN_NAME.match(name.rpartition(".")[0])):
        return "plan"
    if prose or around & _DOC_FOLDERS or _DOC_NAME.match(name):
        return "docs"
    tool = name in _TOOLING_FILES and not is_misplaced
    if tool or _TOOLING_NAME.match(name) or around & _TOOLING_FOLDERS:
        return "tooling"
    return "unknown" if language in _DATA_LANGUAGES else "code"
