"""The numbers of a run, kept on the device that computed them until they are read."""
