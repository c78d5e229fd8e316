"""How far one home goes: a million memories in one namespace, ten thousand namespaces in one home.

In: the folder of shared data. Out: bench/results/scale*.json and .md, and from those the pictures
in docs/images. Every write and every question goes through `Memory`, as users' do.
"""
