"""RemoteTrigger: prompts that are kept and started at a `handrail serve` of another machine."""
