"""Defines the TLS settings of software, and makes the certificates of a lab."""
