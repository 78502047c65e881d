"""May this call run? Rules, the frozen policy, and layers that give opinions. Nothing here waits, asks or writes."""
