"""Middleware in Java: one library carries an object, another one makes bytes of it."""
