"""Parts of figures: paper, axes, headings, legends and colours; and saving of figures."""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.drawing._captions import caption_of as caption_of, keep_caption as keep_caption
    from opinionsim.drawing._save import check_suffix as check_suffix, require_figure as require_figure, save as save
    from opinionsim.drawing._style import (
        BAR as BAR,
        INK as INK,
        LINES as LINES,
        SHARES as SHARES,
        UNASSIGNED as UNASSIGNED,
        Facets as Facets,
        band_handles as band_handles,
        colour_bar as colour_bar,
        draw_marks as draw_marks,
        heading as heading,
        is_narrow as is_narrow,
        legend_below as legend_below,
        legend_beside as legend_beside,
        legend_handles as legend_handles,
        line_height as line_height,
        line_style as line_style,
        model_colours as model_colours,
        model_handles as model_handles,
        name_outer as name_outer,
        new_axes as new_axes,
        new_figure as new_figure,
        new_panels as new_panels,
        opinion_colours as opinion_colours,
        opinion_map as opinion_map,
        opinion_ticks as opinion_ticks,
        page as page,
        paper as paper,
        point_name as point_name,
        pt as pt,
        set_heading as set_heading,
        signed as signed,
        tidy as tidy,
        time_axis as time_axis,
        unused as unused,
        write_numbers as write_numbers,
    )

__getattr__, __dir__ = on_first_use(__name__)
