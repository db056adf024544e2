"""Imports networks from files of other tools, through one common model, and exports plans to other tools."""
