"""The fixtures of commands, which this folder shares with those of the core."""

from tests.cli.conftest import invoke as invoke, spec as spec, store as store
from tests.cli.test_outputs import place as place
from tests.cli.test_plot_settings import reworded as reworded
