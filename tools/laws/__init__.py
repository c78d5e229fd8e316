"""The laws of order, tried on generated homes through the public API with the real model.

A law says how an answer may change, and not which answer is right: what is unrelated moves nothing,
what is better in every respect stands before what is worse, a mark has a reason. `homes` has the
values; `generating` and `metamorphic` generate homes whose truth is known from labels; `asking`
keeps a home and asks it; `evidence` compares two statements from outside; `order`, `marks`, `form`
and `surfaces` hold the laws.
"""
