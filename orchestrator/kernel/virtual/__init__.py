"""Lab kernel in virtual time: kernel.py starts owner.py, which boots; guest.py runs first in the guest."""
