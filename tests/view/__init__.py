"""Tests of `handrail.view`."""
