"""A terminal cockpit for people who train DFlash drafters."""

__version__ = "0.1.0"
