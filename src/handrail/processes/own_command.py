"""How handrail starts itself as another process."""

import sys

OWN_COMMAND = (sys.executable, "-P", "-m", "handrail")
"""With -P no module in the folder that it is started in can take the place of ours, or of Python's own."""
