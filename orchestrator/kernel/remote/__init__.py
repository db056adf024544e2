"""Lab kernel `ssh`: owner.py is started here, campaign/remote.py and remote_owner.py there."""
