"""The atlas: which interaction model meets given requirements on a network, with its measurements."""
