"""The command line: parse arguments, pick a front end."""
