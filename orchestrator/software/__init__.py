"""Contains one module for each kind of software; `registry` lists them, `kind` defines what each provides."""
