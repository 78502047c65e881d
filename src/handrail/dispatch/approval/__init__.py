"""Who may run a call: the gate that judges by a policy, those it can ask, and the record of every decision."""
