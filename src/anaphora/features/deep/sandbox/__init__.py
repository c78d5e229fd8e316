"""The sandbox of deep recall: code that a model wrote runs here and touches nothing else.

It never gets a file, a socket, a process, the environment or a Python object of the host.
"""
