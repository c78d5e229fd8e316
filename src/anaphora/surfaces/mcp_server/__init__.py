"""Anaphora for coding agents, by the Model Context Protocol.

In: requests of an MCP client, over standard input or HTTP. Out: what the facade gives, in the one
JSON form, with a short text beside it. It holds no logic of recall; it answers `initialize` and
`tools/list` before any model or database is touched, and ends when its client does.
"""
