"""Figures of measures over what was swept."""
