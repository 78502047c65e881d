"""From a tool request to its result: when it may start, one pipeline for each call, and results that fit."""
