"""Reading YAML and JSON documents, and checking them against a model with errors a person can act on.

Everything a user writes by hand (specifications, topics, personas) comes through here, so that every
mistake is reported the same way: file, line, field, what is wrong and what would be valid.
"""

from opinionsim.documents._document import Document, is_one_line, read_document, show_value, spell_path
from opinionsim.documents._parsing import KeyPath, parse_value
from opinionsim.documents._validation import DocumentModel, fields_at, validate

__all__ = [
    "Document",
    "DocumentModel",
    "KeyPath",
    "fields_at",
    "is_one_line",
    "parse_value",
    "read_document",
    "show_value",
    "spell_path",
    "validate",
]
