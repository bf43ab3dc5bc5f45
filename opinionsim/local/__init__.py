"""Chat models whose weights are loaded into this process.

The folder's ``parts.toml`` lists one module for each prefix of a model's name, ``hf:`` or ``gguf:``. A module has the
function ``load(name, *, temperature, max_tokens, **options)``, which returns a LangChain chat model, and
``weights(name)``, which returns the file or folder with its weights.
"""
