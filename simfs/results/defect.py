"""What must never happen."""


class EngineError(RuntimeError):
    """The engine has gone wrong in the run that the message names: never the user's fault."""
