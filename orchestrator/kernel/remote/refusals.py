"""Explains ssh's error texts for a failed connection: their meanings and remedies."""

from __future__ import annotations

import re

from orchestrator.language.uris import RemoteMachine

# The texts are from OpenSSH 9 (sshconnect.c, sshconnect2.c, misc.c, kex.c). The first entry that matches is
# used; {by_hand} is the ssh command.
_MEANINGS = (
    ("IDENTIFICATION HAS CHANGED",
     "the machine shows another host key than the one known here: it was set up anew, or it is not the one "
     "that you mean; ask who runs it before you take the old key out with ssh-keygen -R"),
    ("Host key verification failed|host key is known for",
     "this machine's host key is not known here, and a run cannot ask: run `{by_hand}` once, and compare "
     "the fingerprint that it shows before you accept it"),
    ("UNPROTECTED PRIVATE KEY|bad permissions",
     "ssh does not use a key that others can read: chmod 600 it"),
    ("Permission denied",
     "it takes none of the keys that ssh has here, and a password cannot be asked for: put yours there with "
     "ssh-copy-id, load it with ssh-add, or name it in ssh's configuration; `{by_hand}` must ask nothing"),
    ("Could not resolve hostname", "no such name is known: look at its spelling, or write its address"),
    ("Connection refused", "no ssh server listens there: is the port right, and openssh-server installed?"),
    ("timed out|No route to host|Network is unreachable|no connection within|not responding",
     "nothing answers: the machine is off, or a firewall or the network is between"),
    ("Connection closed|Connection reset|Broken pipe|exchange_identification",
     "the other side ended the connection; its log (journalctl -u ssh) says why"),
    ("Bad configuration option|terminating, .* bad configuration", "correct ssh's configuration file"),
)  # fmt: skip


def explained(machine: RemoteMachine, said: str) -> str:
    """Returns ssh's error text `said` (which may be empty) in one line, followed by its meaning
    and remedy.
    """
    words = " ".join(said.replace("@", " ").split() if "IDENTIFICATION HAS CHANGED" in said else said.split())
    port = f"-p {machine.port} " if machine.port else ""
    user = f"{machine.user}@" if machine.user else ""
    by_hand = f"ssh {port}{user}{machine.host}"
    for pattern, meaning in _MEANINGS:
        if re.search(pattern, said):
            return f"{machine.url}: {words}; {meaning.format(by_hand=by_hand)}"
    return f"{machine.url}: {words or 'ssh ended without an error message'}; `{by_hand}` tries it by hand"
