"""Fits every constant that depends on the embedder's cosines: `make fit`, or

    python -m tools.fitting --data FOLDER [--only STEP,…] [--embedder FOLDER] [--show]

from data to constants. Each step writes into the modules named below, the next one runs in a new
process with what was written, and at the end stands one table: each constant before and after, and
what was held out, measured with the old values and with the new ones. `--show` writes nothing: then
every step starts from what is shipped. `--embedder FOLDER` asks a folder's embedder in place of the
bundled one, as if it were that; `--homes FOLDER` (`.models/fitting`) keeps homes and vectors, which
are most of the time.

In their order, with the constants of each step (below src/anaphora/) and what it is fitted on; held
out are chats 6 to 10 of REALTALK and BEAM, the second half of `changes` and the stories of
bench/stories, and the held-out authors of corpus/ (corpus/split.json):

    calibration   embed/calibration.py  MINILM: where the bundled model has neutral texts
                  (`embed/neutral`); with it the bundled model's own cosines stay as they are
    turns         rank/turns.py  Weights.words_half, .meaning, .neighbour, .time_evidence:
                  `bench.fit_turns`, chats 1 to 5; a plateau is kept
    memories      rank/memories.py  WORDS_TRUST, DECAY_FLOOR, UNSURE, SURE: `bench.memory_fit`,
                  chats 1 to 5; PARTIAL_TRUST: facts of the training authors; a plateau is kept
    links         ingest/linking.py  CLOSE, NEAR: corpus/changes, of which the embedder has seen
                  nothing
    holding       rank/holding_weights.py  BEFORE: `tools.fit_holding`
    silence       rank/silence.py  CONSTANT, MEANING, UNSEEN, TURN_FLOOR,
                  HIT_TURNS, HIT_FACTS: `bench.silence`, the first half of `changes`, chats 1 to 5
                  and the training authors, also in homes of 2 to 10 statements
    silence read  rank/silence.py  READ_CONSTANT, READ_MEANING, READ_UNSEEN, READ_FEW,
                  READ_ODDS, READ_HIT_TURNS, READ_HIT_FACTS and those named ALONE_…: the same
                  with a reader: three held-out authors and chats 1 to 5: it has learnt the others
    crowd         rank/silence.py  CROWD: `bench.crowd`, a home of 100,000 statements: the training
                  authors, the first half of `changes` and REALTALK 1 to 5, without a reader
    confidence    rank/confidence.py  TURN_WEIGHTS, MEMORY_WEIGHTS: `bench.deep_shortcut`,
                  chats 1 to 5
    unasked       rank/relevance.py  CONSTANT, ANSWERS, FIRST, LEAD, COVERS: `bench.injection`,
                  chats 1 to 5; where a reader is installed READ_CONSTANT, READ_ANSWERS, READ_FIRST,
                  READ_LEAD, READ_COVERS, READ_ODDS

Not fitted here. By hand, on plateaus that are wider than what one model differs from another:
rank/holding.py REPLACED, LEADS, LINKED and PAST, rank/relevance.py THRESHOLD, MEMORY_THRESHOLD and
MEMORY_EVIDENCE, and the weights of projects (rank/context/weights.py). The family that
rank/silence.py CALIBRATED_FOR names is that of the bundled model, and changes with it. The judge of
pairs has steps of its own: docs/how-to/train-the-judge.md.
"""
