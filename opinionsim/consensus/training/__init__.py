"""Trainings on ratings of statements: their data, reward models, and models that draft statements."""
