"""Sends or takes messages over UDP: `both.py send|take PORT`."""

import socket
import sys

from vnet_accounting import Accounting

mode, port = sys.argv[1], int(sys.argv[2])
account, s = Accounting(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if mode == "send":
    for message in account.due():
        sent_ns = account.now_ns()
        text = f"{message.flow} {message.seq} ".encode().ljust(message.size, b".")
        for _, address in message.to:
            s.sendto(text, (address, port))
        account.sent(message, sent_ns)
else:
    s.bind(("", port))
    account.listening()
    print("listening", flush=True)
    while True:
        flow, seq, *_ = s.recv(65536).split()
        account.received(int(flow), int(seq))
