"""Reads the figures that programs print into their logs: one module for each format of output."""
