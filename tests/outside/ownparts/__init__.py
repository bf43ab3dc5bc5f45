"""Parts that a user of the package might write: one of each kind."""
