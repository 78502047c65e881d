"""The tool contract: what a tool says about itself, what it is given, what it returns, and the pool it stands in."""
