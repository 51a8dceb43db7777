"""The errors that are smmd's own; everything else is a ``ValueError`` or a ``TypeError``."""

from __future__ import annotations


class MissingExtra(ImportError):
    """An optional part was asked for whose packages are not installed."""

    def __init__(self, feature: str, extra: str, package: str) -> None:
        super().__init__(
            f"{feature} needs the package {package!r}, which is not installed: "
            f'run  pip install "smmd[{extra}]"'
        )
        self.feature, self.extra, self.package = feature, extra, package
