"""The protocol, over streams of a test and over those of a real process."""
