"""What mmpretrain's metrics of boxes import and the tests do not call."""
