"""Lab kernel `uml`: outside, kernel.py starts owner.py, which boots; inside, init.py goes on as guest.py."""
