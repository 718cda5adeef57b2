"""Pieces of other places than the cursor's that a prompt may show, the most wanted first.

Definitions, callers, similar code and recent work, each found by a module of its own. Knows the
``index``; whether a piece fits into a prompt is ``assembly``'s affair.
"""

from fimble_context.candidates.candidate import Candidate, Place
from fimble_context.candidates.chunks import fact_chunk, still_there
from fimble_context.candidates.near import Near, words_of
from fimble_context.candidates.similar import SimilarCode

__all__ = [
    "Candidate",
    "Near",
    "Place",
    "SimilarCode",
    "fact_chunk",
    "still_there",
    "words_of",
]
