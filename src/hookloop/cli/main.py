"""The entry point of the command line. It starts fast, because a verb is imported when used."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn, cast

import click

from hookloop.cli.shared.examples import EXAMPLES
from hookloop.cli.shared.output import JSON, Output, add_output_options
from hookloop.cli.shared.plugged import plugged_command, plugged_verbs
from hookloop.cli.shared.streams import keep_streams, report_lost_output
from hookloop.lazy import load_name, module_in_rooms
from hookloop.parallel.launched import join_launcher
from hookloop.version import VERSION

GROUPS = {
    "Before a training": ("new", "check", "try", "model", "find-lr", "find-batch"),
    "Training": ("train", "resume", "sweep", "run"),
    "A trained model": ("validate", "test", "predict", "export", "publish", "join"),
    "Runs": ("runs", "board", "diff", "ask", "tag", "note", "rm"),
    "Time travel": (
        "replay",
        "samples",
        "verify-replay",
        "audit",
        "bisect",
        "blame",
        "fork",
        "tree",
    ),
    "Proofs": ("verify-resume", "kill-test", "verify-hooks", "reproduce"),
    "Looking things up": (
        "config",
        "plan",
        "trace",
        "explain",
        "points",
        "hooks",
        "schema",
        "completion",
        "mcp",
    ),
}
"""The verbs by purpose, in the order of their use."""

VERBS = tuple(verb for verbs in GROUPS.values() for verb in verbs)
WIDTH = max(map(len, VERBS))

COMMANDS = {
    "new": "init create scaffold template startproject",
    "train": "fit start launch main begin learn",
    "resume": "continue restart",
    "try": "dry-run dryrun smoke smoke-test fast-dev-run sanity",
    "validate": "eval evaluate val validation",
    "predict": "infer inference apply",
    "ask": "signal request control set tell",
    "check": "lint doctor verify",
    "config": "show print dump effective resolve",
    "schema": "json-schema",
    "model": "summary summarize params parameters architecture",
    "find-lr": "lr-find lr_find lr-finder lrfind find-rate",
    "find-batch": "scale-batch-size batch-size auto-batch tune-batch",
    "reproduce": "repeat rerun again",
    "trace": "timeline firings perfetto",
    "explain": "why who provenance lineage",
    "bisect": "parting first-difference diverge divergence",
    "replay": "rewind goto step-back time-travel",
    "blame": "accuse culprit worst-samples outliers",
    "fork": "branch clone split",
    "tree": "lineage family graph ancestry",
    "audit": "inspect prove trust",
    "verify-replay": "check-replay test-replay",
    "samples": "ids batch indices which-samples",
    "sweep": "tune search hpo optimize folds",
    "plan": "timetable schedule order",
    "runs": "list ls status experiments",
    "board": "dashboard ui serve web view tensorboard",
    "diff": "compare difference",
    "tag": "label mark",
    "note": "comment annotate describe",
    "rm": "delete remove prune clean",
    "export": "convert onnx save-model to-onnx script",
    "publish": "upload push share release card",
    "join": "merge consolidate",
    "completion": "complete autocomplete completions",
    "mcp": "agent agents model-context-protocol llm",
}
"""Verbs, with the names that other command lines use."""


MODULES = {"try": "try_out"}
"""Modules of verbs that Python does not take as a module's name."""


class Verbs(click.Group):
    """A group of commands; each is in the module with its name, or in another package."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order of their use, not of the alphabet."""
        return [*VERBS, *_of_others()]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs by purpose."""
        others = {"From other packages": _of_others()} if _of_others() else {}
        for title, verbs in {**GROUPS, **others}.items():
            rows = []
            for verb in verbs:
                command = self.get_command(ctx, verb)
                if command is not None:
                    rows.append((verb.ljust(WIDTH), command.get_short_help_str(limit=80)))
            with formatter.section(title):
                formatter.write_dl(rows)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a verb, or what a package has for it."""
        if cmd_name not in EXAMPLES:  # So that only modules of this package are imported by name.
            found = plugged_command(cmd_name)
            return found and add_output_options(found)
        module = MODULES.get(cmd_name, cmd_name.replace("-", "_"))
        name = module_in_rooms("hookloop.cli", [str(Path(__file__).parent)], module)
        command = cast("click.Command", load_name({}, name, "command"))
        examples = EXAMPLES[cmd_name]
        title = "Example:" if len(examples) == 1 else "Examples:"
        command.epilog = "\n".join(["\b", title, *(f"  {line}" for line in examples)])
        return add_output_options(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; an unknown one is rejected with the nearest name."""
        from hookloop.peers import suggestion

        # Options are left to click, which reports unknown ones itself. While a shell completes, an
        # error would be shown in the middle of the line that is being written.
        is_wrong = args and args[0] not in VERBS and not args[0].startswith("-")
        if is_wrong and not ctx.resilient_parsing and args[0] not in plugged_verbs():
            verbs = self.list_commands(ctx)
            hint = suggestion(args[0], COMMANDS, verbs) or f" There are {', '.join(verbs)}."
            raise click.UsageError(f"There is no command '{args[0]}'.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run a verb; for an option that is a key of the config, show how to set it."""
        try:
            # The options of a verb are parsed when the group invokes it, so their errors arise
            # here.
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            hint = _hint_for_option(error.option_name)
            if hint is None:
                raise
            message = f"There is no option '{error.option_name}'.{hint}"
            raise click.UsageError(message, error.ctx) from error


def _of_others() -> tuple[str, ...]:
    """Return the verbs that the engine does not know."""
    return tuple(verb for verb in plugged_verbs() if verb not in VERBS)


def _hint_for_option(option: str) -> str | None:
    from hookloop import peers
    from hookloop.runs.moved_settings import MOVED

    name = option.lstrip("-").partition("=")[0].replace("-", "_")
    if name == "config":
        return " The config is given without one: hookloop train config.yaml."
    if name in ("set", "override", "o", "overrides", "cfg_options", "opts"):
        return " A value of the config is changed with KEY=VALUE alone: optimizer.lr=0.1."
    ours = peers.translation(name, peers.INNER_KEYS) or peers.translation(name, peers.ARGUMENTS)
    key = name if name in peers.ARGUMENTS or "." in name else ours
    key = ".".join(MOVED[name]) if name in MOVED else key
    return key and f" A value of the config is changed with KEY=VALUE: {key}=..."


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="hookloop")
def cli() -> None:
    """Train PyTorch models with hooks at named mount points.

    A training is described by a config file, and KEY=VALUE changes a value of it. A run is one
    directory. 'hookloop COMMAND --help' shows the options of a command, with an example.
    """


def main() -> None:
    """Run the command line and exit with its code: 2 for a user error, 1 for a failed run."""
    keep_streams()
    join_launcher()
    try:
        # In standalone mode, click would end an interrupted command with 1.
        cli.main(standalone_mode=False, prog_name="hookloop")
    except click.ClickException as error:  # In what was written: no command has begun.
        error.show()
        _end(error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        _end("interrupted", 130)  # As a shell reports a process that SIGINT ended: 128 + 2.
    finally:
        report_lost_output()


def _end(reason: str, code: int) -> NoReturn:
    """Exit where no command can report why; as JSON, too, if that was wanted."""
    output = Output(as_json=JSON in sys.argv)
    output.fail(reason)
    output.finish(code)
    sys.exit(code)
