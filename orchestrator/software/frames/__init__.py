"""The test of a path after RFC 2544: trials that the lab carries out between two interfaces."""
