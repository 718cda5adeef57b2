"""What is in the way of running models on this machine, and what to do about it.

One module a subject. Parsers are pure functions over what the system's tools print, judges
pure functions over what was found; only the probes look at the machine.
"""

from fimble.doctor.checks import Check, Report
from fimble.doctor.examination import examine

__all__ = ["Check", "Report", "examine"]
