"""Edits: from a task and a place to the smallest change of the text, or a reason why not.

Editor-neutral: documents and code points in, hunks out. Writes to no document and to no file;
``text_files`` alone touches the disk, for the command line.
"""
