"""What ratings of statements show: measures, their tables, choices by rules, and predictions of agreement."""
