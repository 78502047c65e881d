"""Language servers: found, started when they are first asked, and asked about code."""
