"""Finds, describes and builds the images of virtual machines, and unpacks container images."""

from orchestrator.images.errors import ImageError
from orchestrator.images.find import locate, look, rests_on, virtual_bytes
from orchestrator.images.model import Image
from orchestrator.images.seed import write_seed

__all__ = ["Image", "ImageError", "locate", "look", "rests_on", "virtual_bytes", "write_seed"]
