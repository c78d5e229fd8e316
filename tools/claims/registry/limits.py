"""x"""
from tools.claims.model import Claim
LIMITS: tuple[Claim, ...] = ()
NO_LIMITS = ()
