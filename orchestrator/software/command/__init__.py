"""Checks and plans commands: any program that is started on its node and may record its own messages."""
