"""Lab kernel in virtual time: kernel.py starts owner.py, which boots; inside, init.sh starts guest.py."""
