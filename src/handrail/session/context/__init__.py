"""What requests say of the folder: memory files, git, the machine."""
