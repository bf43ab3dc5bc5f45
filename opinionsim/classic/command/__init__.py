"""The command that simulates a classic model, or sweeps over values."""
