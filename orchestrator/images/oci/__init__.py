"""Container images from archives: read, and unpacked for light nodes; no daemon, no network, nothing run."""

from .archive import Archive, Settings, read
from .store import unpacked

__all__ = ["Archive", "Settings", "read", "unpacked"]
