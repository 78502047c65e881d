"""What the web tools of a session stand on: search services, the model that reads pages."""
