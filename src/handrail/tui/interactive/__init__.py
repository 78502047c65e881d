"""The conversation on a terminal: drawn inline below the scrollback, with an input line that is always there."""
