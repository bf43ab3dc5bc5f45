"""Read and check YAML and JSON documents that users write: specifications, topics, personas.

Errors have one form: file, line, field, problem and valid values.
"""

from opinionsim.foundation.documents._document import (
    Document as Document,
    edited as edited,
    is_one_line as is_one_line,
    normal as normal,
    parse_document as parse_document,
    read_bytes as read_bytes,
    read_document as read_document,
    read_text as read_text,
    show_value as show_value,
    spell_path as spell_path,
)
from opinionsim.foundation.documents._parsing import KeyPath as KeyPath, parse_value as parse_value
from opinionsim.foundation.documents._validation import (
    MAX_INT as MAX_INT,
    DocumentModel as DocumentModel,
    fields_at as fields_at,
    validate as validate,
)
