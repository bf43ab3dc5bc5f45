"""The scripted stand-in: what it makes of a prompt, and what it answers."""
