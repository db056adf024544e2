"""Lab kernel `ssh`: owner.py runs on this machine, orchestrator/run/remote.py and remote_owner.py on the
other.
"""
