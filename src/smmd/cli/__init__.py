"""The command line: one module per verb, each registering itself.  No formulas live here."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from smmd.errors import MissingExtra

#: The modules of this package that hold verbs, in the order of ``smmd --help``.
VERBS = ("measure", "test", "threshold", "train", "evaluate", "sample", "reproduce")

#: Exit status for what the user can mend; 3 is kept for ``--fail-if-rejected``.
USAGE = 2


def main() -> None:
    """Run the command line; a user's mistake ends in one line, not in a traceback."""
    try:
        status = build_app()(standalone_mode=False)
    except KeyboardInterrupt:
        _complain("interrupted")
        sys.exit(130)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        sys.stderr.close()
        sys.exit(0)
    except (ValueError, TypeError, ImportError, OSError) as error:
        _complain(str(error))
        sys.exit(USAGE)
    except Exception as error:
        # Typer's own errors (an unknown option, a missing value) know how to show themselves.
        if not hasattr(error, "show"):
            raise
        error.show()
        sys.exit(getattr(error, "exit_code", USAGE))
    sys.exit(status if isinstance(status, int) else 0)


def build_app() -> Any:
    """The Typer application with every verb."""
    try:
        import typer
    except ImportError:
        raise MissingExtra("The command line", "cli", "typer") from None
    app = typer.Typer(
        name="smmd",
        help="Are these vectors normally distributed?  Measure it, test it, enforce it.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    version = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    )

    @app.callback()
    def root(version: bool = version) -> None:
        """Are these vectors normally distributed?  Measure it, test it, enforce it."""

    for verb in VERBS:
        import_module(f"smmd.cli.{verb}").register(app)
    return app


def _version(asked: bool) -> None:
    if asked:
        import typer

        import smmd

        typer.echo(smmd.__version__)
        raise typer.Exit


def _complain(message: str) -> None:
    print(f"smmd: error: {message}", file=sys.stderr)
