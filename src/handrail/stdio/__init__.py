"""
Standard input and output as a channel to another program: JSON lines over any pair of descriptors.

`streams` reads and writes lines, `pipe` knows the descriptor, `bounds` shortens what readers would not take,
`own_output` keeps standard output for the lines alone. What the lines say stands in the packages above.
"""
