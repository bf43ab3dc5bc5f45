"""``python -m opinionsim``: the command line."""

from __future__ import annotations

from opinionsim.cli import main

if __name__ == "__main__":
    main()
