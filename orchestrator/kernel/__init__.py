"""The lab kernels: choose the kernel that a lab runs in, and start, own and end the lab process there.

protocol.py is their common interface, registry.py chooses one. host.py is this machine's own kernel;
packages: uml (User-Mode Linux), virtual (vNET's User-Mode Linux in virtual time), remote (another machine's
kernel, over ssh), multi_host (kernels of several hosts).
"""
