"""The language server: the only code that knows the Language Server Protocol.

Documents come in, requests are answered, and every conversion (positions, URIs, settings)
happens here, at the edge. What is suggested is decided in ``fimble.assist``; the model runs
in another process altogether.
"""

from fimble.lsp.entry import serve

__all__ = ["serve"]
