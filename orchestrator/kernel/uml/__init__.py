"""Lab kernel `uml`: outside the guest, kernel.py starts owner.py, which boots it; inside, init.py continues
as guest.py.
"""
