"""Several servers on one PostgreSQL: started, asked in turn, killed, and looked over afterwards.

`servers` starts and kills processes, `asking` is the round robin, `ledger` keeps what was
acknowledged, `load` is the mixed load, `checking` compares servers with the ledger.
"""
