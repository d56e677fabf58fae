"""What mmpretrain's formatting imports and the tests do not call."""
