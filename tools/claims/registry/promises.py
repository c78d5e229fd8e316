"""x"""
from tools.claims.model import Claim
PROMISES: tuple[Claim, ...] = ()
NO_PROMISES = ()
