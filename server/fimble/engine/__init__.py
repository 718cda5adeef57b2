"""The model process and its client.

``server`` side: an HTTP service that loads a package with onnxruntime-genai and keeps KV
state between requests. Client side: what ``fimble.assist`` and the command line call.
Knows nothing of editors: no import of ``fimble.lsp`` or ``fimble.assist`` here.
"""
