"""Reading YAML and JSON documents that users write (specifications, topics, personas), and checking them.

Errors have one form: file, line, field, problem and what would be valid.
"""

from opinionsim.documents._document import Document, is_one_line, parse_document, read_document, show_value, spell_path
from opinionsim.documents._parsing import KeyPath, parse_value
from opinionsim.documents._validation import DocumentModel, fields_at, validate

__all__ = [
    "Document",
    "DocumentModel",
    "KeyPath",
    "fields_at",
    "is_one_line",
    "parse_document",
    "parse_value",
    "read_document",
    "show_value",
    "spell_path",
    "validate",
]
