"""Inside a lab in virtual time: its first process, which runs the lab process and stops the kernel.

Started by init.sh; standard library only. Nothing comes in from outside during the run; out go the
lab's lines (raw/guest.jsonl), its errors (raw/lab.log) and its exit status (raw/status), all as files.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

POWER_OFF = 0x4321FEDC  # LINUX_REBOOT_CMD_POWER_OFF, include/uapi/linux/reboot.h
RAW = Path("/vnet/run/raw")
LINES, ERRORS, STATUS = "guest.jsonl", "lab.log", "status"


def run(settings: dict[str, object], raw: Path = RAW) -> int:
    """Run the lab process to its end, reaping whatever else ends; its exit status, 128 + n for signal n."""
    with (raw / LINES).open("wb") as lines, (raw / ERRORS).open("wb") as errors:
        child = subprocess.Popen(
            settings["argv"],  # type: ignore[call-overload]
            env=settings["env"],
            stdin=subprocess.DEVNULL,
            stdout=lines,
            stderr=errors,
        )
        while True:
            pid, status = os.wait()
            if pid == child.pid:
                child.returncode = code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code


def main() -> None:
    """Run what the settings file (argument 1) says, leave the exit status, stop the kernel."""
    status = run(json.loads(Path(sys.argv[1]).read_text()))
    os.sync()  # results are on the host before the status says that they are
    (RAW / STATUS).write_text(f"{status}\n")
    os.sync()
    ctypes.CDLL(None).reboot(POWER_OFF)


if __name__ == "__main__":
    main()
