"""Many tasks at once, several trials each, under several models and policies, and what came of them."""
