"""The kinds of software, a module each. `registry` lists them; `kind` defines what each provides."""
