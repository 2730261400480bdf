"""The exceptions that reach users."""


class CgragError(Exception):
    """What is wrong, with the file or setting named, and the command or change that mends it.

    >>> print(CgragError("The folder /srv/code does not exist.", "Give a folder that does: cgrag run --corpus FOLDER"))
    The folder /srv/code does not exist.
    Give a folder that does: cgrag run --corpus FOLDER
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem}\n{remedy}" if remedy else problem)
        self.problem = problem
        self.remedy = remedy


class Transient(CgragError):
    """What may pass by itself: a server or network that is away. A run that nobody watches tries again."""
