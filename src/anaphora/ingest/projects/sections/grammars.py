"""What each programming language calls its parts: tables over the node types of tree-sitter.

In: the name of a language. Out: its table, and on first use its grammar. It holds no algorithm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from anaphora.ingest.projects.files.roles import words

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
    symbols: Mapping[str, str]
    minor: Mapping[str, str] = field(default_factory=dict)
    holders: frozenset[str] = frozenset()
    wrappers: frozenset[str] = frozenset()
    outer: frozenset[str] = frozenset()
    comments: str = "(comment) @comment"
    imports: str = ""
    entry: str = "language"


_PYTHON = Grammar(
    "tree_sitter_python",
    symbols={"function_definition": "function", "class_definition": "class"},
    minor={"assignment": "constant", "type_alias_statement": "type"},
    holders=frozenset({"class_definition"}),
    wrappers=words(
        "block if_statement elif_clause else_clause try_statement except_clause finally_clause "
        "with_statement expression_statement"
    ),
    outer=frozenset({"decorated_definition"}),
    imports=(
        "(import_statement) @import (import_from_statement) @import "
        "(future_import_statement) @import"
    ),
)

_JAVASCRIPT_SYMBOLS = {
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "class_declaration": "class",
    "method_definition": "method",
}
_JAVASCRIPT_IMPORTS = (
    "(import_statement) @import (export_statement source: (string)) @import "
    "((call_expression function: (identifier) @f arguments: (arguments . (string))) @import "
    '(#eq? @f "require")) '
    "(call_expression function: (import) arguments: (arguments . (string))) @import"
)
_JAVASCRIPT = Grammar(
    "tree_sitter_javascript",
    symbols=_JAVASCRIPT_SYMBOLS,
    minor={"lexical_declaration": "constant", "variable_declaration": "constant"},
    holders=frozenset({"class_declaration"}),
    wrappers=words(
        "class_body statement_block if_statement else_clause expression_statement try_statement"
    ),
    outer=frozenset({"export_statement"}),
    imports=_JAVASCRIPT_IMPORTS,
)
_TYPESCRIPT = Grammar(
    "tree_sitter_typescript",
    symbols={
        **_JAVASCRIPT_SYMBOLS,
        "abstract_class_declaration": "class",
        "interface_declaration": "interface",
        "enum_declaration": "enum",
        "internal_module": "module",
        "module": "module",
    },
    minor={
        **_JAVASCRIPT.minor,
        "type_alias_declaration": "type",
        "function_signature": "function",
    },
    holders=frozenset(
        {"class_declaration", "abstract_class_declaration", "internal_module", "module"}
    ),
    wrappers=_JAVASCRIPT.wrappers,
    outer=frozenset({"export_statement", "ambient_declaration"}),
    imports=_JAVASCRIPT_IMPORTS + " (import_require_clause) @import",
    entry="language_typescript",
)
_TSX = Grammar(
    _TYPESCRIPT.package,
    symbols=_TYPESCRIPT.symbols,
    minor=_TYPESCRIPT.minor,
    holders=_TYPESCRIPT.holders,
    wrappers=_TYPESCRIPT.wrappers,
    outer=_TYPESCRIPT.outer,
    imports=_TYPESCRIPT.imports,
    entry="language_tsx",
)

_GO = Grammar(
    "tree_sitter_go",
    symbols={
        "function_declaration": "function",
        "method_declaration": "method",
        "type_spec": "type",
        "type_alias": "type",
    },
    minor={"const_spec": "constant", "var_spec": "constant"},
    wrappers=words("type_declaration const_declaration var_declaration var_spec_list"),
    imports="(import_spec) @import",
)

_RUST = Grammar(
    "tree_sitter_rust",
    symbols={
        "function_item": "function",
        "struct_item": "struct",
        "enum_item": "enum",
        "union_item": "union",
        "trait_item": "trait",
        "impl_item": "impl",
        "mod_item": "module",
        "macro_definition": "macro",
    },
    minor={
        "const_item": "constant",
        "static_item": "constant",
        "type_item": "type",
        "function_signature_item": "function",
    },
    holders=frozenset({"impl_item", "trait_item", "mod_item"}),
    wrappers=frozenset({"declaration_list", "foreign_mod_item", "block"}),
    comments="(line_comment) @comment (block_comment) @comment (attribute_item) @comment",
    imports="(use_declaration) @import (mod_item !body) @import (extern_crate_declaration) @import",
)

_JAVA = Grammar(
    "tree_sitter_java",
    symbols={
        "class_declaration": "class",
        "interface_declaration": "interface",
        "enum_declaration": "enum",
        "record_declaration": "class",
        "annotation_type_declaration": "interface",
        "method_declaration": "method",
        "constructor_declaration": "method",
        "compact_constructor_declaration": "method",
    },
    holders=words(
        "class_declaration interface_declaration enum_declaration record_declaration "
        "annotation_type_declaration"
    ),
    wrappers=words(
        "class_body interface_body enum_body enum_body_declarations annotation_type_body"
    ),
    comments="(line_comment) @comment (block_comment) @comment",
    imports="(import_declaration) @import",
)

_C_WRAPPERS = words(
    "preproc_ifdef preproc_if preproc_else preproc_elif linkage_specification declaration_list"
)
_C = Grammar(
    "tree_sitter_c",
    symbols={
        "function_definition": "function",
        "struct_specifier": "struct",
        "union_specifier": "union",
        "enum_specifier": "enum",
    },
    minor={
        "declaration": "constant",
        "type_definition": "type",
        "preproc_def": "macro",
        "preproc_function_def": "macro",
    },
    wrappers=_C_WRAPPERS,
    imports="(preproc_include) @import",
)
_CPP = Grammar(
    "tree_sitter_cpp",
    symbols={
        **_C.symbols,
        "class_specifier": "class",
        "namespace_definition": "module",
        "concept_definition": "type",
    },
    minor={**_C.minor, "alias_declaration": "type"},
    holders=frozenset({"class_specifier", "struct_specifier", "namespace_definition"}),
    wrappers=_C_WRAPPERS | {"field_declaration_list"},
    outer=frozenset({"template_declaration"}),
    imports=_C.imports,
)

_RUBY = Grammar(
    "tree_sitter_ruby",
    symbols={
        "method": "method",
        "singleton_method": "method",
        "class": "class",
        "module": "module",
    },
    minor={"assignment": "constant"},
    holders=frozenset({"class", "module"}),
    wrappers=frozenset({"body_statement", "singleton_class", "if", "unless", "then", "else"}),
    imports=(
        "((call method: (identifier) @f arguments: (argument_list . (string))) @import "
        '(#match? @f "^(require|require_relative|load)$"))'
    ),
)

_PHP = Grammar(
    "tree_sitter_php",
    symbols={
        "function_definition": "function",
        "class_declaration": "class",
        "interface_declaration": "interface",
        "trait_declaration": "trait",
        "enum_declaration": "enum",
        "method_declaration": "method",
        "namespace_definition": "module",
    },
    minor={"const_declaration": "constant"},
    holders=words(
        "class_declaration interface_declaration trait_declaration enum_declaration "
        "namespace_definition"
    ),
    wrappers=words("declaration_list enum_declaration_list compound_statement if_statement"),
    imports=(
        "(namespace_use_declaration) @import (require_expression) @import "
        "(require_once_expression) @import (include_expression) @import "
        "(include_once_expression) @import"
    ),
    entry="language_php",
)

_C_SHARP = Grammar(
    "tree_sitter_c_sharp",
    symbols={
        "class_declaration": "class",
        "struct_declaration": "struct",
        "interface_declaration": "interface",
        "enum_declaration": "enum",
        "record_declaration": "class",
        "method_declaration": "method",
        "constructor_declaration": "method",
        "destructor_declaration": "method",
        "operator_declaration": "method",
        "local_function_statement": "function",
        "namespace_declaration": "module",
    },
    minor={"delegate_declaration": "type"},
    holders=words(
        "class_declaration struct_declaration interface_declaration record_declaration "
        "namespace_declaration"
    ),
    wrappers=words(
        "declaration_list global_statement file_scoped_namespace_declaration preproc_if "
        "preproc_region"
    ),
    imports="(using_directive) @import",
)

_BASH = Grammar(
    "tree_sitter_bash",
    symbols={"function_definition": "function"},
    minor={"variable_assignment": "constant"},
    wrappers=frozenset({"if_statement", "declaration_command"}),
    imports=(
        '((command name: (command_name) @f . argument: (_)) @import (#match? @f "^(source|[.])$"))'
    ),
)

GRAMMARS: Final[Mapping[str, Grammar]] = {
    "python": _PYTHON,
    "javascript": _JAVASCRIPT,
    "typescript": _TYPESCRIPT,
    "tsx": _TSX,
    "go": _GO,
    "rust": _RUST,
    "java": _JAVA,
    "c": _C,
    "cpp": _CPP,
    "ruby": _RUBY,
    "php": _PHP,
    "csharp": _C_SHARP,
    "bash": _BASH,
}


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
