"""Reads container images from archives and unpacks them for light nodes, without a daemon or network, and
without running them.
"""

from .archive import Archive, Settings, read
from .store import unpacked

__all__ = ["Archive", "Settings", "read", "unpacked"]
