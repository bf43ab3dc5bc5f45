"""Chat models whose weights are loaded into this process.

Each is a module that the folder's ``parts.toml`` names by the beginning of a model's name, ``hf:`` or ``gguf:``. It has
``load(name, *, temperature, max_tokens, **options)``, which gives a LangChain chat model, and ``weights(name)``, the
file or folder that holds its weights.
"""
