"""The loop: ask the model, run the tools it asks for, ask again; and the events of it for any front end."""
