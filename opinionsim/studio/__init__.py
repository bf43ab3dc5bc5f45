"""A folder of studies in a browser: designed, priced, started, watched and read. Needs the extra ``web``."""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.studio._page_address import PageAddress as PageAddress
    from opinionsim.studio._serve_studio import studio as studio, view as view

__getattr__, __dir__ = on_first_use(__name__)
