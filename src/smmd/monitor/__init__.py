"""Reading SMMD² over batches: one batch, the B- and the E-statistic (paper, section 3.1).

Numbers in, numbers and words out.  Under normality each batch's SMMD² has mean 0 and variance 1, so
the averages have bands that need no tuning.  SMMD² is skewed: how often a three-sigma band is left
although the codes are normal, and the band that is left as often as one asks, follow from the law
of a batch, which ``Batch`` knows.
"""

from smmd.monitor.averages import THREE_SIGMA, BStatistic, EStatistic
from smmd.monitor.batch import Batch

__all__ = ["THREE_SIGMA", "BStatistic", "Batch", "EStatistic"]
