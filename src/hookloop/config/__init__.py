"""Config files, in the order in which they are processed.

    load.load(path, overrides)   file, its bases, overrides, interpolation -> Config
    blueprint.draw(config)       every check that needs no object -> Blueprint
    build.build(config)          the objects -> Trainer
    dump.dump(config)            the effective config as YAML

Nothing is imported here: registries are used without torch, which `build` needs.
"""
