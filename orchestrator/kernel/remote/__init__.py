"""Lab kernel `ssh`: kernel.py starts owner.py here, campaign/far.py far.py there; line.py joins the two."""
