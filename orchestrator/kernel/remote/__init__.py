"""Lab kernel `ssh`: owner.py is started here, run/remote.py and remote_owner.py there."""
