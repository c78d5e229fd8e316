"""Deep recall: a model writes its own search code, which runs in a sandbox.

`recall` answers a question: the cached answer, the shortcut, or the `loop` with its `prompts`, the
`host` functions that code may call, and the `budget`. Below: `evidence` (what a question may look
at), `persisted` (what truth keeps), `models`, `sandbox`; above: `dreaming` (between sessions).
"""
