"""The dialect, to which the entry point in pyproject.toml refers."""

from collections.abc import Mapping

from hookloop import Hook
from hookloop.dialects import Dialect


def _adapt(glaze: object) -> list[Hook]:
    # Imported here, because this module is imported in every run that has a config.
    from hookloop_kiln.adapter import adapt

    return adapt(glaze)


def _catalogue() -> Mapping[str, str]:
    from hookloop_kiln.glazes import CATALOGUE

    return CATALOGUE


KILN = Dialect(
    name="kiln",
    bases=(("kiln", "Glaze"), ("hookloop_kiln", "Glaze")),
    adapt=_adapt,
    catalogue=_catalogue,
    packages={"kiln": "hookloop_kiln"},
    registries=(("hookloop_kiln.glazes", "GLAZES", "module_dict"),),
    settings=("shelf",),  # Set on a glaze by a config, beside the arguments of its class.
    keys={"glazes": "hooks"},  # What configs of kiln call our `hooks`.
)
