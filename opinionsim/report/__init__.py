"""A study as others get it: what may be passed on, one page, one archive, and what was frozen beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opinionsim.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.report._archive import write_archive as write_archive, write_export as write_export
    from opinionsim.report._released import released as released
    from opinionsim.report._verify import Verification as Verification, verify as verify

__getattr__, __dir__ = on_first_use(__name__)
