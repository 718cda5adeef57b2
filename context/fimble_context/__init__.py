"""fimble_context: the right code for a prompt, chosen by syntax, within a token budget.

A library of its own. It knows no LSP, no model and no network, and imports nothing of
``fimble``: it gets text and offsets, and a function that counts tokens.
"""
