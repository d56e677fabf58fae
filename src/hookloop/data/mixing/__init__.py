"""How several streams are read as one."""
