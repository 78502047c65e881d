"""What Glob and Grep share: patterns of names, and the program that walks the tree."""
