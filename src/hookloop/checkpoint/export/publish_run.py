"""Publish the model of a run: weights, config and model card, in a directory or on a model hub."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from torch import Tensor

from hookloop.checkpoint.choose import Chosen
from hookloop.checkpoint.export.publish import Format, encode
from hookloop.errors import CheckpointError, HookloopError
from hookloop.runs import plain_yaml
from hookloop.runs.card import Facts, model_card
from hookloop.runs.files import make_folder, write_bytes
from hookloop.runs.layout import RunDir
from hookloop.runs.policy import OF_ONE_DIRECTORY
from hookloop.runs.reader import trained_seconds
from hookloop.runs.reading import read_json
from hookloop.secret import redact

HUB = "hf://"
ENVIRONMENT = "environment.json"
"""The file of a run directory that describes where it was trained."""

_NAME = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class Publication:
    """What is published: the contents of the files by name, and the metadata of the weights."""

    files: Mapping[str, bytes]
    about: Mapping[str, object]


def collect(
    run: Path,
    chosen: Chosen,
    config: Mapping[str, object],
    *,
    format: Format = "safetensors",
    card: bool = True,
    name: str | None = None,
    summary: Mapping[str, object] | None = None,
) -> Publication:
    """Make the files to publish, in memory.

    Args:
        run: The run's directory.
        chosen: The weights.
        config: The run's config; secrets are references.
        format: The kind of file for the weights.
        card: Whether to write a model card.
        name: The name in the card.
        summary: The summary of the run, if not that of its directory.
    """
    # Paths of the machine on which it was trained help nobody else.
    kept = {key: value for key, value in config.items() if key not in OF_ONE_DIRECTORY}
    about = chosen.describe(kept)
    weights = f"model.{format}"
    files = {weights: encode({"model": chosen.weights}, format, about)}
    if kept:  # A training that a script describes has none.
        files["config.yaml"] = redact(plain_yaml.dump(kept)).encode()
    if card:
        facts = Facts(
            name=name or str(kept.get("name") or run.resolve().name),
            weights=weights,
            about=about,
            config=kept,
            summary=_read_summary(run) if summary is None else summary,
            environment=_read_environment(run),
            seconds=trained_seconds(RunDir(run)) or None,
            parameters=sum(
                one.numel() for one in chosen.weights.values() if isinstance(one, Tensor)
            ),
        )
        files["README.md"] = redact(model_card(facts)).encode()
    return Publication(files, about)


def check_target(to: str | Path, names: Mapping[str, object], *, overwrite: bool = False) -> None:
    """Reject a place where nothing can be published.

    Raises:
        HookloopError: If the name of a repository is not one, or files would be replaced.
    """
    if str(to).startswith(HUB):
        _repository(str(to))
        return
    folder = Path(to)
    if folder.exists() and not folder.is_dir():
        raise HookloopError(f"'{folder}' is a file: publish into a directory.")
    taken = [name for name in names if (folder / name).exists()]
    if taken and not overwrite:
        raise HookloopError(
            f"'{folder}' has {', '.join(taken)} already. Give another directory, or --overwrite."
        )


def write(publication: Publication, to: str | Path, *, private: bool = False) -> str:
    """Write the files into a directory, or upload them; return where they are.

    Args:
        publication: The files.
        to: A directory, or ``hf://user/model``.
        private: Whether a repository that is created on the hub is private.
    """
    if not str(to).startswith(HUB):
        folder = Path(to)
        make_folder(folder, folder.parent)
        for name, content in publication.files.items():
            write_bytes(folder / name, content)
        return str(folder)
    with TemporaryDirectory(prefix="hookloop-publish-") as scratch:
        for name, content in publication.files.items():
            (Path(scratch) / name).write_bytes(content)
        return _upload(scratch, _repository(str(to)), private=private)


def _upload(folder: str, repository: str, *, private: bool) -> str:
    try:
        from huggingface_hub import HfApi
    except ModuleNotFoundError as error:
        raise HookloopError(
            f"'{HUB}' needs the package 'huggingface_hub', which is not installed: "
            "pip install 'hookloop[hub]'"
        ) from error
    api = HfApi()  # It finds the token itself: HF_TOKEN, or what `hf auth login` stored.
    try:
        url = api.create_repo(repository, private=private, exist_ok=True)
        api.upload_folder(
            repo_id=repository, folder_path=folder, commit_message="Publish with hookloop"
        )
    except Exception as error:  # Of the network, the hub, or its rules for names and tokens.
        raise HookloopError(
            f"'{HUB}{repository}' could not be published: {error} A token is taken from HF_TOKEN, "
            "or from 'hf auth login'."
        ) from error
    return str(url)


def _repository(to: str) -> str:
    name = to.removeprefix(HUB)
    if _NAME.fullmatch(name) is None:
        raise HookloopError(f"'{to}' is not the name of a repository: write {HUB}user/model.")
    return name


def _read_summary(run: Path) -> Mapping[str, object]:
    try:
        return RunDir(run).read_summary()
    except (OSError, ValueError) as error:
        raise CheckpointError(f"The summary of '{run}' cannot be read: {error}") from error


def _read_environment(run: Path) -> Mapping[str, object]:
    """Return what the run wrote about its environment; empty if it wrote nothing readable."""
    try:
        found = read_json(run / ENVIRONMENT)
    except (OSError, ValueError):  # It is a part of the card that may be missing.
        return {}
    return found if isinstance(found, dict) else {}
