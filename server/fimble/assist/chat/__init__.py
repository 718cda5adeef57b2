"""Chat about code: what goes into a conversation, its answers, and what was left out of it.

Editor-neutral, as all of ``assist``. ``service`` is where an answer comes from.
"""
