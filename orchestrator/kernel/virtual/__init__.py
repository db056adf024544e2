"""Lab kernel in virtual time: kernel.py starts owner.py, which boots the guest; guest.py is the guest's first
process.
"""
