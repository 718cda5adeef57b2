"""What an editor asks for, in editor-neutral terms: completions, and what they are made of.

Works on documents and offsets; asks the engine and ``fimble_context``. Knows no protocol of
editors (no lsprotocol, no URIs, no UTF-16) and no terminal.
"""
