"""Config files, station by station.

    load.load(path, overrides)   file, its bases, overrides, interpolation -> Config
    blueprint.draw(config)       every check that needs no object -> what is to be built
    build.build(config)          the objects -> Trainer
    dump.dump(config)            the effective config as YAML

Nothing is imported here: a registry is wanted without torch, and `build` needs it.
"""
