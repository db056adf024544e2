"""Lab kernel in virtual time: kernel.py starts owner.py, which boots; guest.py is the first process inside."""
