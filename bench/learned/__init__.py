"""A learned last stage over the turn ranking: what it would be worth on data that it never saw.

`features` describes the candidates of a question, `styles` makes more questions out of those that
there are, `model` fits, `run` leaves out one data set after the other. Nothing here is part of the
product, which ranks by the sum of `rank/turns.py`: docs/decisions/0033 says why.
"""
