"""The kinds of software: one room each. `registry` lists them; `kind` says what a room is to the others."""
