"""Reserves cores, memory and NICs of this machine for accounts, from one time to another."""
