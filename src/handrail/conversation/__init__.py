"""The conversation as frozen data: blocks, messages, requests and stream events."""
