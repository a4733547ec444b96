"""The one family of errors a user can meet; each says what is wrong and what to do.

Every message names the file, key or row at fault. `title` heads the message on the screen and on
the command line; `remedy` is the sentence that tells the user what to do next.
"""

from __future__ import annotations


class NoctuaryError(Exception):
    """Base of every error that is shown to a user as a sentence and never as a traceback."""

    title = "Noctuary"

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class PackageMissing(NoctuaryError):
    """A package that Noctuary stands on is not installed."""

    title = "Installation"


class SettingsError(NoctuaryError):
    """A setting is unknown or its value is invalid."""

    title = "Setting"


class DatabaseError(NoctuaryError):
    """The database cannot be used as it is."""

    title = "Database"


class DatabaseUnavailable(DatabaseError):
    """The server cannot be reached now; it may come back."""

    title = "Database unavailable"


class DatabaseRefused(DatabaseError):
    """The server answers but is not one that can be used: version, encoding, extension, privilege."""

    title = "Database refused"


class SchemaError(DatabaseError):
    """The schema is newer than this program, or a migration was altered after it was applied."""

    title = "Database schema"


class FolderError(NoctuaryError):
    """A folder of notes cannot be added or read."""

    title = "Folder"


class NoteError(NoctuaryError):
    """One note cannot be read or indexed; the others go on."""

    title = "Note"


class LogError(NoctuaryError):
    """The log cannot be read."""

    title = "Log"


class RetryError(NoctuaryError):
    """What is to be tried again is not there, or has not failed."""

    title = "Retry"


class ModelError(NoctuaryError):
    """A model cannot be loaded or does not answer."""

    title = "Model"


class ServiceError(NoctuaryError):
    """A service of the system cannot be installed, asked or removed."""

    title = "Service"


class QueryError(NoctuaryError):
    """A search was asked in a way that cannot be answered."""

    title = "Query"


class DatasetError(NoctuaryError):
    """A file of labelled questions cannot be read, or a row of it is not one."""

    title = "Questions"


class LanguageError(NoctuaryError):
    """The language model cannot be used: not set up, not reached, refused, or too slow."""

    title = "Language model"


class BudgetError(LanguageError):
    """What the day's token limit leaves is not enough for another call."""

    title = "Token budget"


class OutputError(LanguageError):
    """What the model wrote is not what it was asked for, also after it was told so."""

    title = "Model's output"


class PromptError(NoctuaryError):
    """A prompt of that version is not there, or cannot be filled in."""

    title = "Prompt"


class WriteError(NoctuaryError):
    """The writing agent wrote nothing: its path was refused, it wandered, or the disk did not take it."""

    title = "Writing"


class ServeError(NoctuaryError):
    """The HTTP server cannot be started as it was asked to."""

    title = "Server"


class BrainError(NoctuaryError):
    """A brain cannot be named like that, or a core cannot be made."""

    title = "Brain"


class CoreUnknown(BrainError):
    """The account has no core of that name; only a person at the keyboard makes one."""

    title = "Core"


class TurnError(NoctuaryError):
    """A turn cannot be prepared, verified or recorded as it is."""

    title = "Turn"


class TurnGone(TurnError):
    """The token of a turn is not valid: used with another answer, expired, or never given out here."""

    title = "Turn token"


class LessonError(NoctuaryError):
    """There is no such lesson or cluster here, or it cannot become what it was asked to."""

    title = "Lesson"


class SynthesisBusy(LessonError):
    """Another process is learning in this brain at this moment."""

    title = "Synthesis"


class SourceError(NoctuaryError):
    """A file of conversations cannot be imported."""

    title = "Import"
