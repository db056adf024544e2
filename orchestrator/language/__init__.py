"""What a topology file is written in: values and their units, places in the file, problems, templates."""
