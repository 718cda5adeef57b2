"""fimble_context: the right code for a prompt, chosen by syntax, within a token budget.

A library of its own. It knows no LSP, no model and no network, and imports nothing of
``fimble``: it gets text and offsets, and a function that counts tokens.

Its folders, each of which imports only those below it. What users need is in the folders
themselves (``from fimble_context.assembly import Workspace``); their modules are inside:

- ``assembly``: sections of a prompt; an open workspace, which brings everything together
- ``candidates``: pieces of other files that a prompt may show
- ``index``: what is known of a whole workspace, kept on disk
- ``workspace``: its files, which of them may be used, where imports lead
- ``syntax``: documents, positions, languages, and what a text's syntax tells

``queries`` holds what the languages' grammars are asked; it is data.
"""
