"""Engines elsewhere: any server that speaks OpenAI's protocol.

``choice`` is what the user has chosen, ``endpoint`` and ``keys`` where a server is and who may
ask it, ``abilities`` what it accepts, ``prompts`` how a prompt is said to it, ``breaker`` and
``retry`` what happens while it fails, ``client`` the engine itself and ``fall_back`` the local
one in its place. Text leaves the machine here and nowhere else.
"""
