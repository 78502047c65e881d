from hypothesis import settings

settings.register_profile("handrail", deadline=None)  # a busy machine is no bug
settings.load_profile("handrail")
