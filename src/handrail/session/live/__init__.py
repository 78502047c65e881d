"""Questions of a session for pages that show them: the socket and what is asked."""
