"""The agent loop: asks the model, runs the tools that it asks for, asks again; and its events for front ends."""
