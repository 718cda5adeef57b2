"""Measurements that the command line can repeat: quality of completions, cost of contexts.

Uses the assistant's own parts from outside; nothing of the assistant knows of it.
"""
