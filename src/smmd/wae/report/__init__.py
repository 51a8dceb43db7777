"""``report.html``: one file that shows a run, with its verdict first and nothing to fetch."""

from smmd.wae.report.publish import publish
from smmd.wae.report.write import FILE, write, write_spread

__all__ = ["FILE", "publish", "write", "write_spread"]
