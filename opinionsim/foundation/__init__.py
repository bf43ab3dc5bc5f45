"""What knows nothing of opinions: random streams, documents with places in errors, texts, tables, compilation.

Each module is imported by its own name; importing the package loads none of them.
"""
