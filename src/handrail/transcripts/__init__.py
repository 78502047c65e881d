"""Transcripts: conversations on disk that survive the end of the program, however it ends."""
