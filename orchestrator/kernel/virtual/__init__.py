"""Lab kernel in virtual time: kernel.py lays out root/ and starts owner.py, which boots; inside, guest.py."""
