"""General tools: random streams, documents with places in errors, texts, tables, compilation.

Import each module by its name. Importing the package loads none of them.
"""
