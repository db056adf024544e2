"""The lab kernels: which kernel a lab runs in, and who starts, owns and ends the lab process there.

protocol.py is what each can do, choose.py takes one. host.py is this machine's own; rooms: uml (User-Mode
Linux), virtual (our User-Mode Linux in virtual time), remote (another machine's kernel, over ssh).
"""
