"""What a checkpoint holds: its form; how parts are collected, checked, restored and compared."""
