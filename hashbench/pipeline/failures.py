"""Failures of plug-ins, reported in a sentence; the traceback goes to a log file in the data folder."""

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from hashbench._plugins import same_folder
from hashbench.errors import HashbenchError, JobFailure, needing, one_line
from hashbench.store.files import data_dir, data_folder, write_text


@contextmanager
def contained(plugin: str, job: str, check: str = "") -> Iterator[None]:
    """Turn whatever a plug-in raises, including ``sys.exit``, into a JobFailure that names it; ``check`` is a command.

    A HashbenchError, such as that for a package that is missing, and the user's interrupt pass unchanged.
    """
    token = data_folder.set(str(data_dir().absolute()))  # wherever the plug-in goes, until `same_folder` returns
    try:
        with same_folder(), needing(plugin):
            yield
    except (HashbenchError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        hint = f"; {check} may say why" if check else ""
        raise JobFailure(
            f"{plugin} failed with {type(error).__name__}: {one_line(error) or 'no message'}{hint}. Fix it; its "
            f"traceback is in {_log(job, error)}."
        ) from error
    finally:
        data_folder.reset(token)


def _log(job: str, error: BaseException) -> str:
    """Write the traceback of an error, replacing that of the job's last failure; return the file."""
    path = data_dir() / "logs" / f"{re.sub('[^A-Za-z0-9._=-]+', '-', job)[-100:].lstrip('-.')}.log"
    try:
        write_text(path, "".join(traceback.format_exception(error)))
    except HashbenchError as unwritten:
        return f"no file: {one_line(unwritten).rstrip('.')}"
    return str(path)
