"""x"""
from tools.claims.model import Claim
SCALE: tuple[Claim, ...] = ()
