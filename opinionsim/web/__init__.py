"""Pages in a browser: the room, where people talk with models, and what all servers share. Needs the extra ``web``."""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.web._desk import Desk as Desk
    from opinionsim.web._export import export as export
    from opinionsim.web._guard import (
        Guard as Guard,
        cookie_name as cookie_name,
        fields as fields,
        set_cookie as set_cookie,
        static as static,
    )
    from opinionsim.web._rights import Keys as Keys, hashed as hashed, new_key as new_key
    from opinionsim.web._serve import PACKAGES as PACKAGES, Served as Served, serve as serve

__getattr__, __dir__ = on_first_use(__name__)
