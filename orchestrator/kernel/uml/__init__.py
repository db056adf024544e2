"""Lab kernel `uml`: outside, kernel.py starts owner.py, which boots; inside, init.sh starts guest.py."""
