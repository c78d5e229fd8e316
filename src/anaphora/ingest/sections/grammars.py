"""The parts of each programming language: tables over the node types of tree-sitter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from anaphora.language.word_lists import by_word, words

if TYPE_CHECKING:
    from tree_sitter import Language, Query


@dataclass(frozen=True, slots=True)
class Grammar:
    """The node types of one language.

    `symbols` become sections, `minor` ones only names; both map a node type to the kind of symbol.
    `holders` are symbols with symbols in them. `wrappers` are looked through: with `outer` the
    lines of the wrapper belong to the symbol in it (a decorator). `comments` and `imports` are
    patterns of a query; `comments` are what belongs to the symbol right below.
    """

    package: str
    symbols: dict[str, str]
    minor: dict[str, str]
    holders: frozenset[str]
    wrappers: frozenset[str]
    outer: frozenset[str]
    comments: str
    imports: str
    entry: str


def _grammar(
    package: str,
    *,
    symbols: dict[str, str],
    minor: dict[str, str] | None = None,
    holders: str = "",
    wrappers: str = "",
    outer: str = "",
    comments: str = "(comment) @comment",
    imports: str = "",
    entry: str = "language",
) -> Grammar:
    """A grammar written with spaces between node types; those of `symbols` stand by their kind."""
    types = (words(holders), words(wrappers), words(outer))
    return Grammar(
        package, by_word(symbols), by_word(minor or {}), *types, comments, imports, entry
    )


_JAVASCRIPT = _grammar(
    "tree_sitter_javascript",
    symbols={
        "function": "function_declaration generator_function_declaration",
        "class": "class_declaration",
        "method": "method_definition",
    },
    minor={"constant": "lexical_declaration variable_declaration"},
    holders="class_declaration",
    wrappers=(
        "class_body statement_block if_statement else_clause expression_statement try_statement"
    ),
    outer="export_statement",
    imports=(
        "(import_statement) @import (export_statement source: (string)) @import "
        "((call_expression function: (identifier) @f arguments: (arguments . (string))) @import "
        '(#eq? @f "require")) '
        "(call_expression function: (import) arguments: (arguments . (string))) @import"
    ),
)
_TYPESCRIPT = replace(
    _JAVASCRIPT,
    package="tree_sitter_typescript",
    symbols=_JAVASCRIPT.symbols
    | by_word(
        {
            "class": "abstract_class_declaration",
            "interface": "interface_declaration",
            "enum": "enum_declaration",
            "module": "internal_module module",
        }
    ),
    minor=_JAVASCRIPT.minor | {"type_alias_declaration": "type", "function_signature": "function"},
    holders=words("class_declaration abstract_class_declaration internal_module module"),
    outer=words("export_statement ambient_declaration"),
    imports=_JAVASCRIPT.imports + " (import_require_clause) @import",
    entry="language_typescript",
)
_C = _grammar(
    "tree_sitter_c",
    symbols={
        "function": "function_definition",
        "struct": "struct_specifier",
        "union": "union_specifier",
        "enum": "enum_specifier",
    },
    minor={
        "constant": "declaration",
        "type": "type_definition",
        "macro": "preproc_def preproc_function_def",
    },
    wrappers=(
        "preproc_ifdef preproc_if preproc_else preproc_elif linkage_specification declaration_list"
    ),
    imports="(preproc_include) @import",
)

GRAMMARS: Final[Mapping[str, Grammar]] = {
    "python": _grammar(
        "tree_sitter_python",
        symbols={"function": "function_definition", "class": "class_definition"},
        minor={"constant": "assignment", "type": "type_alias_statement"},
        holders="class_definition",
        wrappers=(
            "block if_statement elif_clause else_clause try_statement except_clause "
            "finally_clause with_statement expression_statement"
        ),
        outer="decorated_definition",
        imports=(
            "(import_statement) @import (import_from_statement) @import "
            "(future_import_statement) @import"
        ),
    ),
    "javascript": _JAVASCRIPT,
    "typescript": _TYPESCRIPT,
    "tsx": replace(_TYPESCRIPT, entry="language_tsx"),
    "go": _grammar(
        "tree_sitter_go",
        symbols={
            "function": "function_declaration",
            "method": "method_declaration",
            "type": "type_spec type_alias",
        },
        minor={"constant": "const_spec var_spec"},
        wrappers="type_declaration const_declaration var_declaration var_spec_list",
        imports="(import_spec) @import",
    ),
    "rust": _grammar(
        "tree_sitter_rust",
        symbols={
            "function": "function_item",
            "struct": "struct_item",
            "enum": "enum_item",
            "union": "union_item",
            "trait": "trait_item",
            "impl": "impl_item",
            "module": "mod_item",
            "macro": "macro_definition",
        },
        minor={
            "constant": "const_item static_item",
            "type": "type_item",
            "function": "function_signature_item",
        },
        holders="impl_item trait_item mod_item",
        wrappers="declaration_list foreign_mod_item block",
        comments="(line_comment) @comment (block_comment) @comment (attribute_item) @comment",
        imports=(
            "(use_declaration) @import (mod_item !body) @import (extern_crate_declaration) @import"
        ),
    ),
    "java": _grammar(
        "tree_sitter_java",
        symbols={
            "class": "class_declaration record_declaration",
            "interface": "interface_declaration annotation_type_declaration",
            "enum": "enum_declaration",
            "method": "method_declaration constructor_declaration compact_constructor_declaration",
        },
        holders=(
            "class_declaration interface_declaration enum_declaration record_declaration "
            "annotation_type_declaration"
        ),
        wrappers="class_body interface_body enum_body enum_body_declarations annotation_type_body",
        comments="(line_comment) @comment (block_comment) @comment",
        imports="(import_declaration) @import",
    ),
    "c": _C,
    "cpp": replace(
        _C,
        package="tree_sitter_cpp",
        symbols=_C.symbols
        | {
            "class_specifier": "class",
            "namespace_definition": "module",
            "concept_definition": "type",
        },
        minor=_C.minor | {"alias_declaration": "type"},
        holders=words("class_specifier struct_specifier namespace_definition"),
        wrappers=_C.wrappers | {"field_declaration_list"},
        outer=words("template_declaration"),
    ),
    "ruby": _grammar(
        "tree_sitter_ruby",
        symbols={"method": "method singleton_method", "class": "class", "module": "module"},
        minor={"constant": "assignment"},
        holders="class module",
        wrappers="body_statement singleton_class if unless then else",
        imports=(
            "((call method: (identifier) @f arguments: (argument_list . (string))) @import "
            '(#match? @f "^(require|require_relative|load)$"))'
        ),
    ),
    "php": _grammar(
        "tree_sitter_php",
        symbols={
            "function": "function_definition",
            "class": "class_declaration",
            "interface": "interface_declaration",
            "trait": "trait_declaration",
            "enum": "enum_declaration",
            "method": "method_declaration",
            "module": "namespace_definition",
        },
        minor={"constant": "const_declaration"},
        holders=(
            "class_declaration interface_declaration trait_declaration enum_declaration "
            "namespace_definition"
        ),
        wrappers="declaration_list enum_declaration_list compound_statement if_statement",
        imports=(
            "(namespace_use_declaration) @import (require_expression) @import "
            "(require_once_expression) @import (include_expression) @import "
            "(include_once_expression) @import"
        ),
        entry="language_php",
    ),
    "csharp": _grammar(
        "tree_sitter_c_sharp",
        symbols={
            "class": "class_declaration record_declaration",
            "struct": "struct_declaration",
            "interface": "interface_declaration",
            "enum": "enum_declaration",
            "method": "method_declaration constructor_declaration destructor_declaration "
            "operator_declaration",
            "function": "local_function_statement",
            "module": "namespace_declaration",
        },
        minor={"type": "delegate_declaration"},
        holders=(
            "class_declaration struct_declaration interface_declaration record_declaration "
            "namespace_declaration"
        ),
        wrappers=(
            "declaration_list global_statement file_scoped_namespace_declaration preproc_if "
            "preproc_region"
        ),
        imports="(using_directive) @import",
    ),
    "bash": _grammar(
        "tree_sitter_bash",
        symbols={"function": "function_definition"},
        minor={"constant": "variable_assignment"},
        wrappers="if_statement declaration_command",
        imports=(
            "((command name: (command_name) @f . argument: (_)) @import "
            '(#match? @f "^(source|[.])$"))'
        ),
    ),
}


@cache
def can_parse(name: str | None) -> bool:
    """Whether a language of `GRAMMARS` has its parser here: not every Python has one."""
    grammar = GRAMMARS.get(name) if name else None
    return grammar is not None and None not in (
        find_spec("tree_sitter"),
        find_spec(grammar.package),
    )


@cache
def language(name: str) -> Language:
    """The grammar of a language of `GRAMMARS`; its wheel is loaded on first use."""
    from tree_sitter import Language

    grammar = GRAMMARS[name]
    return Language(getattr(import_module(grammar.package), grammar.entry)())


@cache
def query(name: str) -> Query:
    """The query that finds comments (@comment) and imports (@import) in a language."""
    from tree_sitter import Query

    grammar = GRAMMARS[name]
    return Query(language(name), f"{grammar.comments} {grammar.imports}")
