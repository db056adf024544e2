"""Makes the sections of the report page: each is a function that returns a part of the page, or None if the
study has nothing for it.
"""
