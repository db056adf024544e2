"""Runs nodes of kind vm: libvirt domains whose agents answer over a virtio-serial port.

The package imports libvirt and jinja2 only where they are used, so that light labs run without either.
"""
