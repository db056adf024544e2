"""Contains the common code of protocols directly above Ethernet: GOOSE and sampled values (IEC 61850)."""
