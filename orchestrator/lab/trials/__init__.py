"""Trials after RFC 2544: pure searches, one exchange of frames at a time, and the files that they leave."""
