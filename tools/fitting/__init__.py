"""Fits every constant that depends on the embedder's cosines: `make fit`, or

    python -m tools.fitting --data FOLDER [--only STEP,…] [--embedder FOLDER] [--show]

from data to numbers, all of which stand in src/anaphora/values/fitted.json. Each step writes its
own there, the next one runs in a new process with what was written, and at the end stands one
table: each number before and after, and what was held out, measured with the old values and with
the new ones. `--show` writes nothing: then every step starts from what is shipped. `--embedder
FOLDER` asks a folder's embedder in place of the bundled one, as if it were that; `--homes FOLDER`
(`.models/fitting`) keeps homes and vectors, which are most of the time.

In their order, with the part of the file and what it is fitted on; held out are chats 6 to 10 of
REALTALK and BEAM, the second half of `changes` and the stories of bench/stories, and the held-out
authors of corpus/ (corpus/split.json):

    calibration   calibration: apart, told, where the bundled model has neutral texts
                  (`embed/neutral`); with them the bundled model's own cosines stay as they are
    turns         turns: words_half, meaning, neighbour, time_evidence: `bench.fit_turns`, chats 1
                  to 5; a plateau is kept
    memories      memories: WORDS_TRUST, DECAY_FLOOR, UNSURE, SURE: `bench.memory_fit`, chats 1 to
                  5; PARTIAL_TRUST: facts of the training authors; a plateau is kept
    links         links: CLOSE, NEAR: corpus/changes, of which the embedder has seen nothing
    holding       holding: `tools.fit_holding`
    silence       silence: CONSTANT, MEANING, UNSEEN, TURN_FLOOR, HIT_TURNS, HIT_FACTS:
                  `bench.silence`, the first half of `changes`, chats 1 to 5 and the training
                  authors, also in homes of 2 to 10 statements
    silence read  silence: READ_CONSTANT, READ_MEANING, READ_UNSEEN, READ_FEW, READ_ODDS,
                  READ_HIT_TURNS, READ_HIT_FACTS and those named ALONE_…: the same with a reader:
                  three held-out authors and chats 1 to 5: it has learnt the others
    crowd         silence: CROWD: `bench.crowd`, a home of 100,000 statements: the training
                  authors, the first half of `changes` and REALTALK 1 to 5, without a reader
    confidence    confidence: TURN_WEIGHTS, MEMORY_WEIGHTS: `bench.deep_shortcut`, chats 1 to 5
    unasked       unasked: CONSTANT, ANSWERS, FIRST, LEAD, COVERS: `bench.injection`, chats 1 to 5;
                  where a reader is installed READ_CONSTANT, READ_ANSWERS, READ_FIRST, READ_LEAD,
                  READ_COVERS, READ_ODDS

The other numbers of the file were chosen by hand, on plateaus that are wider than what one model
differs from another: where each is used stands why. The family that rank/silence.py CALIBRATED_FOR
names is that of the bundled model, and changes with it. The weights of projects stand in
features/projects/ranking/weights.py. The judge of pairs has steps of its own:
docs/how-to/train-the-judge.md.
"""
