"""Checks and plans file transfers by FTP: a real server and a real client whose transfers are all
recorded.
"""
