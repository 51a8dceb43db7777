from smmd.nulls.moments import NullMoments
from smmd.nulls.spectrum import Null


def verdict(null: Null, n: int, d: int, gamma2: float, moments: NullMoments) -> tuple[bool, str]:
    return True, ""
