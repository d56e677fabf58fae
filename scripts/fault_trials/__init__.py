"""The trials of ``make faults``: each disturbs a training and checks that nothing is lost."""
