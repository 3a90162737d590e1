"""CSV for downloads: the rule lies in ``queuecast.render.csvsafe``, since the command line writes CSV, too."""

from __future__ import annotations

from queuecast.render.csvsafe import STARTS, safe_cell, to_csv

__all__ = ["STARTS", "safe_cell", "to_csv"]
