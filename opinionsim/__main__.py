"""``python -m opinionsim``: the command line."""

import os
import sys

from opinionsim.cli import main

if __name__ == "__main__":
    # `-m` puts the current folder first on the import path, where a file may be called like a package.
    if sys.path[0] == os.getcwd() and not os.path.samefile(os.path.dirname(os.path.dirname(__file__)), sys.path[0]):
        del sys.path[0]
    main()
