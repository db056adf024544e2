"""The atlas: a data set of measured interaction models that answers which model meets given requirements on a
network.
"""
