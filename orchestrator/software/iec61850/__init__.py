"""Common code of the protocols directly above Ethernet: GOOSE and sampled values (IEC 61850)."""
