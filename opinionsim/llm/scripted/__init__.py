"""The scripted model: how it reads a prompt, and what it answers."""
