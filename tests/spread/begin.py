"""Inside the lab kernel: goes on as pytest, in the project's own environment."""

import os
import subprocess
import sys

os.environ |= {"HOME": "/root", "PYTHONDONTWRITEBYTECODE": "1"}
os.environ.pop("PYTHONPATH", None)
project, *arguments = sys.argv[1:]
os.chdir(project)
done = subprocess.run(
    [f"{project}/.venv/bin/python", *arguments], stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT
)
sys.exit(done.returncode)
