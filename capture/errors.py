"""Defines the exception of this package, so that a caller can show its text and exit with status 1."""


class CaptureError(Exception):
    """Raised for an invalid pcap, table or tool; the text states place, fault and remedy."""
