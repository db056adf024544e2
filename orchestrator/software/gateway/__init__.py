"""Checks and plans cooperative congestion control: gateways on routed nodes, and the broker of a control
centre.
"""
