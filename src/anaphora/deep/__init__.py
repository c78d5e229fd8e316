"""Deep recall: a model writes its own search code, which runs in a sandbox.

In: a question, the parts of a namespace, models that the caller configured. Out: an answer with
sources that exist, at a known cost. Code that a model wrote never touches the machine.
"""
