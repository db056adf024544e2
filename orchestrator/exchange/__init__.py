"""Networks of other tools: read into one model, from which topology files are written; and written out."""
