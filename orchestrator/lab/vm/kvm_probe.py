"""Runs a virtual machine with one instruction, HLT, in a separate process, since the test can hang.

`ask` starts that process, `python -m orchestrator.lab.vm.kvm_probe`, which prints `ok` or the reason of the
failure. Numbers: uapi/linux/kvm.h, x86-64.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import struct
import subprocess
import sys

CREATE_VM, VCPU_MMAP_SIZE, CREATE_VCPU, RUN = 0xAE01, 0xAE04, 0xAE41, 0xAE80
SET_TSS_ADDR = 0xAE47
SET_USER_MEMORY_REGION = 0x4020AE46
SET_REGS, GET_SREGS, SET_SREGS = 0x4090AE82, 0x8138AE83, 0x4138AE84
EXIT_REASON_AT, EXIT_HLT = 8, 5
ENTRY = 0x1000
HLT = b"\xf4"
COMMAND = (sys.executable, "-m", "orchestrator.lab.vm.kvm_probe")


def ask(deadline_s: float, command: tuple[str, ...] = COMMAND) -> str:
    """Runs the probe and returns its answer, or a text if it gave none within `deadline_s`. Kills the process
    then, without waiting for its end, since it may hang in the kernel.
    """
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        output, _ = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        process.kill()
        return f"no answer within {deadline_s:g} s"
    return output.strip() or f"ended with status {process.returncode} and no answer"


def run_one_instruction() -> int:
    """Runs HLT in a new guest and returns the exit reason of KVM_RUN (5: the guest halted, as it should);
    raises OSError if the kernel refuses.
    """
    kvm = os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC)
    machine = fcntl.ioctl(kvm, CREATE_VM, 0)
    fcntl.ioctl(machine, SET_TSS_ADDR, 0x7FFB0000)  # three free pages: Intel needs them for real mode
    memory = mmap.mmap(-1, 0x10000)
    memory[ENTRY : ENTRY + 1] = HLT
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    fcntl.ioctl(machine, SET_USER_MEMORY_REGION, struct.pack("=IIQQQ", 0, 0, 0, len(memory), address))
    cpu = fcntl.ioctl(machine, CREATE_VCPU, 0)
    state = mmap.mmap(cpu, fcntl.ioctl(kvm, VCPU_MMAP_SIZE, 0))
    segments = bytearray(0x138)
    fcntl.ioctl(cpu, GET_SREGS, segments)
    struct.pack_into("=QIH", segments, 0, 0, 0xFFFF, 0)  # the code segment begins at address 0
    fcntl.ioctl(cpu, SET_SREGS, segments)
    fcntl.ioctl(cpu, SET_REGS, struct.pack("=18Q", *[0] * 16, ENTRY, 2))  # rip, rflags
    fcntl.ioctl(cpu, RUN, 0)
    reason: int = struct.unpack_from("=I", state, EXIT_REASON_AT)[0]
    return reason


def main() -> int:
    """Prints `ok` and returns 0 if the guest halted; else prints the reason and returns 1."""
    try:
        reason = run_one_instruction()
    except OSError as error:
        sys.stdout.write(f"{error}\n")
        return 1
    sys.stdout.write("ok\n" if reason == EXIT_HLT else f"the guest stopped for reason {reason}, not HLT\n")
    return 0 if reason == EXIT_HLT else 1


if __name__ == "__main__":
    sys.exit(main())
