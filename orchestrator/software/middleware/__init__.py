"""Checks and plans middleware in Java: one library transports an object, another library serialises it."""
