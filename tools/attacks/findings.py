"""The findings that the attacks stand for: each with what an attacker achieved, in one line.

H, M and L are those of the second day (their table is in the review of the third), F those of the
third, W21 is one of a week's use; K are attacks of the same kinds that achieved, or would have. No
finding has the numbers F17 and F18. What L7, L9, L10 and L14 said is not in that review; their
lines say what was changed for them.
"""

from __future__ import annotations

from typing import Final

FINDINGS: Final[dict[str, str]] = {
    "F1": "a device that was removed goes on writing, for all devices",
    "F2": "a small mail takes gigabytes of memory, or minutes",
    "F3": "a small Word document or PDF takes all memory or time; entities pass the check",
    "F4": "what was forgotten for good comes back through the mirror or an old export",
    "F5": "a link in a mirrored folder is followed: read, written, deleted outside",
    "F6": "the title of a deleted conversation stays on all devices and in the remote",
    "F7": "a value from a clock that is ahead cannot be corrected on other devices",
    "F8": "forgetting beside an exchange leaves the words in the database or sends them",
    "F9": "a remote's answer is read whole, however large",
    "F10": "pipes and devices in a folder remote hang sync for ever",
    "F11": "answers that are no entries raise errors of Python; background sync ends silently",
    "F12": "the command line's import takes quadratic time in its files",
    "F13": "one client closes MCP over HTTP, or registration, for all others",
    "F14": "a name with # in Claude's memory tool loses another file's sections",
    "F15": "a small page takes quadratic time",
    "F16": "old libraries with published holes may be installed beside it",
    "F19": "two versions of one entry in a folder remote stay undetected",
    "F20": "the project's key stays in the database's files after leaving sync",
    "F21": "mirrored files are open to others; a killed process leaves words in the folder",
    "F22": "a secret in a file's name stays in the folder and the ledger",
    "F23": "secrets of many forms are stored with a memory; ordinary words are taken for some",
    "F24": "tags of documents, ids of conversations and turns carry secrets onward",
    "F25": "a page's encoding raises an error of Python; an import leaves files beside a database",
    "F26": "recall fails on a full disk though what it needs can be read",
    "F27": "exports and imports wait behind hostile documents and deep questions",
    "F28": "an answer is called supported by a source that contradicts it",
    "F29": "what is to be sent is counted otherwise than what was sent; rare words are missed",
    "F30": "a damaged head of the audit trail raises an error of Python",
    "F31": "a token stands in a log; a forged Host is ours; a part's token learns of the whole",
    "H1": "a time that no year has makes a home unreadable",
    "H2": "a small zip file takes ten gigabytes of memory",
    "H3": "secrets of .env and key files are in the home",
    "M1": "children of a server inherit its socket",
    "M2": "silent connections keep all others out",
    "M3": "long questions hold up short ones",
    "M4": "deep questions hold up short ones",
    "M5": "an import of many small members takes quadratic time",
    "M6": "values of a sealed home can be moved and emptied unnoticed",
    "M7": "an upload to a sealed home lies on the disk in clear",
    "M8": "stored words stand outside the mark of what is recalled",
    "M9": "other users of the machine read and write through the server",
    "M10": "stored text reaches a terminal as escape sequences",
    "L1": "a named pipe in the place of a file hangs an import",
    "L2": "threads go on after a memory was closed",
    "L3": "a version of the lock files' library follows links",
    "L4": "a clock before 1980 breaks backups",
    "L5": "words of a removed project are left in the home",
    "L6": "a secret in a deep question or a conversation's id is kept",
    "L7": "PostgreSQL's files keep what was forgotten, and no page says what to run",
    "L8": "an index that is deleted beside readers makes wrong answers",
    "L9": "writes are acknowledged that go into a deleted database",
    "L10": "what stays in clear in an encrypted home is not named",
    "L11": "a token of one namespace learns of others from statistics",
    "L12": "a page of another site may call the servers",
    "L13": "a large body or one of two lengths is not refused in words",
    "L14": "words of sections that a full disk cost are missed until a repair",
    "K1": "folders within folders without end stop a mirror or an import",
    "K2": "odd files, links and names in a mirrored folder hang it or lead outside",
    "K3": "a backup or an archive writes outside of the home, or unpacks without end",
    "K4": "words of a question or a filter are read as syntax",
    "K5": "a page of another site reaches the server by a rebound name or a form",
    "K6": "a field or an argument reaches a terminal as an escape sequence",
    "K7": "text hidden in letters without a shape reaches a model",
    "K8": "a program in the sandbox reaches its host, or takes its memory or time",
    "K9": "a server's finest log holds words, tokens or paths",
    "K10": "a resident process that is stopped or killed keeps its clients waiting",
    "K11": "odd requests or a damaged database hang or end the MCP server",
    "W21": "deleting a user takes many calls and leaves words behind",
}

HELD_BY_TESTS: Final[dict[str, tuple[str, ...]]] = {
    "F1": (
        "sync/test_removal.py::test_a_thief_writes_on",
        "sync/test_removal.py::test_a_device_believed_it_and_compacted",
        "sync/test_removal.py::test_two_remove_each_other",
    ),
    "F2": ("test_hostile_documents.py::test_headers_of_mails_are_bounded",),
    "F3": (
        "test_hostile_documents.py::test_every_part_of_a_word_document_is_looked_through",
        "test_hostile_documents.py::test_lines_of_an_export_are_read_in_a_worker",
    ),
    "F7": ("sync/test_clocks.py::test_a_value_is_corrected_on_any_device",),
    "F9": (
        "sync/test_bounds.py::test_an_answer_that_is_none",
        "sync/test_bounds.py::test_an_entry_that_is_none",
    ),
    "F10": ("sync/test_bounds.py::test_an_entry_that_is_none",),
    "F11": (
        "sync/test_bounds.py::test_an_answer_that_is_none",
        "sync/test_bounds.py::test_an_entry_that_is_none",
        "sync/test_background.py::test_an_error_that_nobody_foresaw_is_told",
    ),
    "F13": (
        "surfaces/test_mcp_http.py::test_no_caller_takes_the_sessions_of_others",
        "surfaces/test_mcp_oauth.py::test_who_floods_keeps_no_other_from_connecting",
    ),
    "F14": (
        "adapters/test_memory_files.py::test_no_name_of_a_file_takes_the_sections_of_another",
        "adapters/test_memory_files.py::test_a_planted_path_of_a_section_ends_no_edit",
        "adapters/test_memory_files.py::test_layers_of_escapes_are_bounded",
    ),
    "F15": (
        "test_hostile_documents.py::test_pages_that_close_nothing",
        "test_hostile_documents.py::test_elements_that_are_not_shown_are_closed_at_once",
    ),
    "F16": ("ops/test_advisories.py::test_no_declared_or_locked_version_has_one",),
    "F19": ("sync/test_bounds.py::test_two_versions_of_one_entry_in_a_folder",),
    "F23": (
        "ingest/test_secrets.py::test_a_secret_is_found_wherever_it_stands",
        "ingest/test_secrets.py::test_a_password_in_words_or_a_command_is_found",
        "ingest/test_secrets.py::test_what_only_looks_like_one_is_left",
    ),
    "F24": (
        "surfaces/test_masking.py::test_tags_of_a_document_and_ids_of_a_chat_keep_no_secret",
        "surfaces/test_masking_ways_out.py::test_no_block_export_or_prompt_tells_it",
    ),
    "F25": (
        "test_hostile_documents.py::test_encodings_that_are_none",
        "test_hostile_documents.py::test_an_imported_database_is_left_as_it_was",
    ),
    "F27": ("test_hostile_documents.py::test_what_takes_long_waits_for_its_own_kind_alone",),
    "F28": (
        "surfaces/test_words_of_others.py::test_an_answer_says_what_was_checked_of_its_sources",
    ),
    "F29": ("sync/test_devices.py::test_what_waits_is_counted_in_entries",),
    "F30": (
        "audit/test_audit_trail.py::test_a_damaged_head_is_reported_and_lets_nothing_go_untold",
        "audit/test_audit_trail.py::test_what_is_damaged_is_reported",
    ),
    "F31": (
        "surfaces/test_logs_are_silent.py::test_no_word_token_or_path_is_logged",
        "surfaces/test_masking.py::test_a_name_that_begins_like_ours_is_another",
        "surfaces/test_masking.py::test_a_token_of_one_namespace_neither_sees_the_remote_nor_removes_devices",
    ),
    "H1": ("test_impossible_times.py::test_every_time_is_refused_or_stays_readable",),
    "H3": ("test_project_secrets.py::test_no_secret_is_stored_or_shown",),
    "M2": ("surfaces/test_rest_together.py::test_the_silent_give_way_to_who_asks",),
    "M3": ("surfaces/test_rest_attacks.py::test_questions_of_many_words_hold_up_no_short_one",),
    "M4": ("surfaces/test_rest_attacks.py::test_deep_questions_hold_up_no_short_one",),
    "M5": ("ingest/test_import_damage.py::test_a_zip_file_is_opened_as_often_with_many_members",),
    "M9": (
        "surfaces/test_mcp_http.py::test_on_this_machine_a_client_works_and_pages_of_others_do_not",
    ),
    "M10": ("surfaces/test_words_of_others.py::test_no_planted_word_drives_a_terminal",),
    "L1": (
        "ingest/test_import_damage.py::test_pipes_devices_and_sockets_are_reported_and_never_waited_for",
        "ingest/test_project_files.py::test_what_is_skipped_is_said",
    ),
    "L3": (
        "ops/test_advisories.py::test_no_declared_or_locked_version_has_one",
        "ops/test_advisories.py::test_doctor_reports_an_installed_one",
    ),
    "L4": ("ops/test_backup.py::test_a_clock_that_no_zip_file_can_have",),
    "L5": ("test_project_removed.py::test_a_removed_project_leaves_no_file",),
    "L6": ("deep/test_deep_facade.py::test_secrets_of_a_question_are_not_kept",),
    "L8": (
        "index/test_disposable.py::test_a_deleted_directory_is_made_again_under_an_open_index",
        "index/test_disposable.py::test_a_directory_that_vanishes_within_a_question",
    ),
    "L9": ("durability/test_damage.py::test_a_database_that_goes_while_it_is_open",),
    "L10": ("surfaces/test_cli_keys.py::test_what_is_not_ours_is_named",),
    "L11": ("surfaces/test_rest_access.py::test_a_token_of_a_part_learns_nothing_of_the_whole",),
    "L12": (
        "surfaces/test_rest_access.py::test_only_known_origins_are_answered",
        "surfaces/test_mcp_http.py::test_on_this_machine_a_client_works_and_pages_of_others_do_not",
    ),
    "L13": (
        "surfaces/test_rest_attacks.py::test_a_body_that_is_too_large_hears_why",
        "surfaces/test_rest_attacks.py::test_a_request_of_two_lengths_is_refused",
    ),
    "K7": (
        "test_marks.py::test_text_in_letters_without_a_shape_is_shown",
        "surfaces/test_words_of_others.py::test_no_planted_word_leaves_its_mark_over_mcp",
    ),
    "K8": (
        "deep/test_sandbox_attacks.py::test_an_attack_gets_nowhere",
        "deep/test_sandbox_walls.py::test_memory_is_bounded_by_every_wall",
        "deep/test_budgets.py::test_code_cannot_outlast_the_question",
    ),
}
"""The tests, below tests/, that make the attacks of a finding in every run of the suite."""
