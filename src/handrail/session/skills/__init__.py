"""Skills, plugins and output styles of a session, and what requests say of them."""
