"""
The first day with handrail, told as stories through the real CLI, the SDK's door and the library.

    test_policy.py, test_policy_cli.py   a security engineer: rules and hooks that cannot work, trust, explain, audit
    test_live.py                         a developer with `-p`: on a terminal, questions, refusals, limits, undo
    test_aftercare.py                    before and after a run: doctor, hanging up, simulate, undo and redo
    test_wire.py                         errors of model servers, programs that read the output, programs that drive it
    test_tapes.py                        an evaluation engineer: record, replay, compare, one call in a test
    test_library.py                      a builder: approvers, deferral, state, typed answers
    test_interop.py                      people who come from other agents: commands, memory, what is not supported
"""
