"""Lab kernel in virtual time: kernel.py starts owner.py, which boots; inside, guest.py is the first process."""
