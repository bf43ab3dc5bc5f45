"""Pages in a browser: the room, where people talk with models, and the viewer of a store. Needs the extra ``web``."""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.web._desk import Desk as Desk
    from opinionsim.web._export import export as export
    from opinionsim.web._serve import serve as serve, view as view

__getattr__, __dir__ = on_first_use(__name__)
