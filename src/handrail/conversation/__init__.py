"""What is said, as frozen data: blocks, messages, stream events and what happens to calls."""
