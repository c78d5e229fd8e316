"""A week of one developer, played against the installed command: `python -m tools.week`.

`story` reads the week that story.txt tells, `transcripts` writes what each client would write,
`clock` moves the time of every process, `player` runs hooks and the memory's tools as the clients
do, `judge` compares what came with what was needed, and `__main__` reports it.
"""
