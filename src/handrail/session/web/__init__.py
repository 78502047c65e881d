"""What the web tools of a session use: search services, and the model that reads pages."""
