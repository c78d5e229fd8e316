"""Written stories with questions, their evidence, changes and silence: reader, checks, scorer.

`reading` makes values of the files, `checking` says what is wrong with them, `scoring` scores what
a search found, `baselines` measures three searches; `tasks` gives the questions, exchanges, past
values and groups one form. Reading, checking and scoring need Python alone.
"""
