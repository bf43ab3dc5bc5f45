"""Contract suites and tools for testing extensions: inherit a suite, supply a fixture, and the contract is checked."""

from opinionsim.testing._clock import VirtualClockLoop, run_virtual

__all__ = ["VirtualClockLoop", "run_virtual"]
