"""The command line: parses arguments and picks a front end."""
