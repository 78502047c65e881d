"""Finds, reads, checks, merges and rewrites settings files, and keeps trust."""
