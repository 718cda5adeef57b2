"""Builds what a release consists of, the same bytes from the same commit. Publishes nothing.

Run by ``.ci/release``. Works on an export of the commit, never on the checkout, so that nothing
that merely lies about gets into a release.
"""
