"""Carries out trials after RFC 2544: searches that need no lab, the exchange of frames for one trial, and the
files of results.
"""
