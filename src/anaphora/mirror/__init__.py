"""A namespace as a folder of Markdown, which a person edits in any editor, and which is read back.

`page` is what a file says, `layout` where it lies, `decision` what to do where home and file
differ; these are pure. `folder` reads and writes files, `home_pages` memories and notes, `ledger`
keeps what both sides had when they were compared last, and `manager` compares them.
"""
