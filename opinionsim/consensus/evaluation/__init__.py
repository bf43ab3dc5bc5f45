"""Evaluation of ratings of statements: measures, tables, choices by rules, and predictions of agreement."""
