"""The exception of this package: one class, so that a caller can show the text and give status 1."""


class CaptureError(Exception):
    """A pcap, a table or a tool is not as it has to be; the text says where, what and the remedy."""
