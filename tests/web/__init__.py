"""Tests of `handrail.web`, most of them in a real browser."""
