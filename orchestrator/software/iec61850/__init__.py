"""What software right above Ethernet has in common: GOOSE and sampled values (IEC 61850)."""
